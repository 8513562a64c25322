"""Attacks on the explorer without a browser: links and sessions."""

import os
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_VALUES = (
    *("", " ", "-1", "0", "999999999999", "1e308", "nan", "a0", "b9.9", "a0,a0,a1.0", "all", "ab", "true", "None"),
    *("../../etc/passwd", "<script>alert(1)</script>", "'; drop table", "%00", "\x00", "😀" * 50, "[MASK] " * 40),
    *("a" * 5000, "1,2,3,4,5,6,7,8,9", "0-0", "{}", "[]", "\u202e", "electra-base-cased-embedded", "no such model"),
)


def shipped_models():
    """The names of the shipped models."""
    return sorted(path.name for path in (ROOT / "assets" / "models").iterdir() if (path / "config.json").is_file())


def use_shipped_models(home):
    """Lets the explorer use the shipped models, without trainings and downloads. Returns: their names."""
    from tests.app.random_sessions import LIMITS

    names = shipped_models()
    offered = ", ".join(f'"{name}"' for name in names)
    (home / "limits.toml").write_text(LIMITS.format(offered=offered, default="bert-small-uncased-embedded"))
    os.environ.update(BERT_TF_HOME=str(home), BERT_TF_EXPLORER=str(home / "limits.toml"))
    return names


def _open(**params):
    from streamlit.testing.v1 import AppTest

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    for key, value in params.items():
        app.query_params[key] = value
    return app.run()


def link(rng, page):
    """Random parameters of a link to a page, texts often: dict name -> value.

    Args:
        page: its name, or one that no page has.
    """
    from ui.shell.catalogue import pages
    from ui.shell.view import PARAMETERS

    own = [f"{page}.{setting}" for setting in pages()[page].settings] if page in pages() else []
    general = [name for name in PARAMETERS if name != "page"]
    params = {key: rng.choice(_VALUES) for key in ("a", "b") if rng.random() < 0.5}
    for keys, most in ((own, 3), (general, 4)):
        for key in rng.sample(keys, rng.randint(0, min(most, len(keys)))):
            params[key] = rng.choice(_VALUES)
    return params


def links(rng, count, home, args):
    """Links with random parameters, general ones and those of the page, to random pages."""
    use_shipped_models(home)
    from tests.app.random_sessions import Faults, stopped_jobs
    from ui.shell.catalogue import pages

    defects, since = [], time.monotonic()
    for number in range(count):
        page = rng.choice([*pages(), "no_such_page"])
        params = link(rng, page)
        try:
            with Faults() as faults, stopped_jobs():
                app = _open(page=page, **params)
                if app.exception or faults.records:
                    raise AssertionError(app.exception or faults.records[0].exc_info)
        except Exception:
            defects.append(f"{page} {params}: {traceback.format_exc()[-300:]}"[:600])
        if args.limit and time.monotonic() - since > args.limit:
            return number + 1, defects
    return count, defects


def sessions(rng, count, home, args):
    """Random sessions with the shipped models; one that fails is shrunk."""
    import hypothesis

    models = use_shipped_models(home)
    from tests.app import random_sessions
    from ui.shell.catalogue import pages

    played, since = [], time.monotonic()

    @hypothesis.seed(args.seed)
    @hypothesis.settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    @hypothesis.given(random_sessions.sessions(list(pages()), models))
    def session(one):
        if args.limit and time.monotonic() - since > args.limit:
            return
        acts = []
        played.append(one)
        try:
            random_sessions.play(one, _open, acts.append)
        except AssertionError as error:
            error.add_note("\n".join(acts))
            raise

    try:
        session()
    except BaseException as error:  # Hypothesis groups several defects
        return len(played), ["".join(traceback.format_exception(error))[-1500:]]
    return len(played), []
