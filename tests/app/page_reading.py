"""Reading what a page shows, and using the controls of its own components, for tests."""

import itertools
import json
import re
import time

import numpy as np
from streamlit.components.v2.bidi_component.main import _make_trigger_id

_NUMBERS = itertools.count(1)  # of what is pressed
_OF_THE_SESSION = ("made", "session", "answered")
PATIENCE = 240  # seconds for work beside the page: the machine may be busy


def component(app, key):
    """What a page gave to the first of its own components of this name; None if none is drawn."""
    return next(iter(components(app, key)), None)


def components(app, key):
    """What a page gave to each of its own components of this name, but for the marks of the session."""
    actual = [json.loads(proto.json) for proto in component_protos(app, key)]
    return [{name: value for name, value in one.items() if name not in _OF_THE_SESSION} for one in actual]


def component_protos(app, key=""):
    """The page's own components of this name, or all, as Streamlit sends them."""
    protos = (getattr(element, "proto", None) for element in walk(app._tree.root))
    own = [proto for proto in protos if type(proto).__name__ == "BidiComponent"]
    return [proto for proto in own if key in ("", proto.component_name.removeprefix("bert_"))]


def controls(app):
    """The controls of the page's own components: dict from a control's name to (what the browser gets, component)."""
    return {
        control["name"]: (control, proto)
        for proto in component_protos(app)
        for control in json.loads(proto.json).get("controls", ())
    }


def control(app, name):
    """What the browser gets of the control called ``name``; None if the page has none."""
    return controls(app).get(name, (None,))[0]


def use(app, name, value=None):
    """Use a control as the browser does, and run the page: press a button, or choose ``value`` of a menu or switch."""
    _, proto = controls(app)[name]
    return press(app, proto, [next(_NUMBERS), "use", {"name": name, "value": value}])


def press(app, proto, *presses, **sent):
    """Send presses in a component as the browser does, and run the page.

    Args: proto: of the component, see `component_protos`. presses: lists [number, event, value]. sent: another
        ``session`` than that of the component's data, or another ``value`` of the whole message.
    """
    states = app._tree.get_widget_states()
    value = {"session": json.loads(proto.json)["session"], "presses": presses, **sent}
    message = json.dumps([{"event": "presses", "value": sent.get("value", value)}])
    states.widgets.add(id=_make_trigger_id(proto.id, "events"), json_trigger_value=message)
    return app._run(states)


def walk(block):
    """Every element below ``block``."""
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from walk(child)


def page_text(app):
    """All that a page says in words, in one string: also the headings of toolbars, and the help of their controls."""
    kinds = (app.title, app.header, app.subheader, app.markdown, app.caption, app.info, app.warning, app.error)
    headings = [bar["heading"] for bar in components(app, "toolbar")]
    helps = [control["help"] for control, _ in controls(app).values()]
    return "\n".join([*(element.value for kind in kinds for element in kind), *headings, *helps])


def param(app, key):
    """A parameter of the address, as text; None if it is not there."""
    value = app.query_params.get(key)
    return value[0] if isinstance(value, list) else value


def away_and_back(app):
    """Open another page, and this one again."""
    page = param(app, "page")
    for name in ("guide", page):
        app.query_params["page"] = name
        app.run()
    return app


def table_key(app, name):
    """The key of the table whose key begins with ``name``: the rest of it depends on its rows."""
    (key,) = {match[0] for table in app.dataframe if (match := re.search(rf"{name}_[0-9a-f]{{8}}$", table.proto.id))}
    return key


def run_until_done(app, done=None):
    """Run the page again until the work beside it is done, and nothing went wrong on the way.

    Args: done: callable (app) -> whether it is; default: there is no bar of work any more. Only with the default may
        the page stay as it is while its jobs run: a run of it takes their time.
    """
    end = time.monotonic() + PATIENCE
    while True:
        assert not app.exception and not app.error, page_text(app)
        if done(app) if done else not shows_progress(app):
            return app
        assert time.monotonic() < end, f"the work did not end: {page_text(app)}"
        time.sleep(0.05)
        while done is None and job_runs(app) and time.monotonic() < end:
            time.sleep(0.02)
        app.run()


def run_until_message(app, sentence):
    """Run the page again until it says a sentence; work beside it may end with an error that is this sentence."""
    end = time.monotonic() + PATIENCE
    while sentence not in page_text(app):
        assert not app.exception and time.monotonic() < end, page_text(app)
        time.sleep(0.05)
        app.run()
    return app


def job_runs(app):
    """Whether a job of the visitor is running or waits for its turn."""
    return "_jobs" in app.session_state and any(job.running for job in app.session_state["_jobs"].values())


def shows_progress(app):
    """Whether a page shows work beside it: with a button to stop it, or, where it cannot be stopped, without steps."""
    stops = any((button.key or "").startswith("w_stop_") for button in app.button)
    return stops or any(bar.proto.text.endswith(" …") for bar in app.get("progress"))


def offered(app, saved, names):
    """See that a page has one menu Save with the results ``names``, each with every format, the figures drawn."""
    assert set(saved) == set(names)
    popovers = [block.proto.popover.label for block in walk(app._tree.root) if getattr(block, "type", "") == "popover"]
    assert popovers.count("Save") == 1
    labels = [one.proto.label for one in app.get("download_button")]
    titles = [title for one in saved.values() for title in one["figures"]]
    for kind in ("CSV", "JSON", "Arrays (NPZ)"):
        assert labels.count(kind) == len(saved)
    assert sorted(label for label in labels if label.endswith("(HTML)")) == sorted(f"{one} (HTML)" for one in titles)
    # "Share" of Predict is a picture of its own; drawings save themselves, and have no figure.
    pictures = [one for one in components(app, "picture") if one["name"] != "bert"]
    assert sorted(one["title"] for one in pictures if "drawing" not in one) == sorted(titles)
    drawn = {data.get("name") for kind in ("grid", "lines") for data in components(app, kind)}
    assert {one["name"] for one in pictures if "drawing" in one} <= drawn
    for one in saved.values():
        assert one["figures"] and all(figure.data for figure in one["figures"].values())


def column(menu, name):
    """The numbers of a column of a saved table."""
    at = menu["header"].index(name)
    return [float(row[at]) for row in menu["rows"]]


def near(actual, wanted, tolerance=2e-4):
    """See that what was saved, six digits of it in a table, are these numbers."""
    np.testing.assert_allclose(np.asarray(actual, float), np.asarray(wanted, float), atol=tolerance, rtol=tolerance)
