"""Attacks on the explorer in a real Chromium: scripts in texts, and a monkey that presses at random."""

import contextlib
import shutil
import time
import urllib.parse

from benchmarks.clicks import chromium
from benchmarks.visitor import ServerProcess
from tests.campaign.explorer import use_shipped_models
from ui.shell.error_messages import FAULTS

_SETTLED = "() => document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'"
_SCRIPTS = (
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    "<svg onload='window.ran = 1'>",
    "[press](javascript:window.ran=1)",
    "</textarea><iframe srcdoc='<script>parent.ran = 1</script>'>",
    "${window.ran = 1} {{window.ran = 1}}",
    "\"><b onmouseover='window.ran = 1'>over</b>",
    "<a href='javascript:window.ran=1'>press</a>",
)
_PRESSED = (
    "button, [role=tab], [role=radio], [role=checkbox], [role=combobox], [role=option], input, summary, a[href^='/']"
)
# What a press of the monkey must not touch: it would leave the explorer, or open a dialog of the browser.
_LEFT_OUT = "[type=file]"


@contextlib.contextmanager
def _browser(home):
    """A page of Chromium at a running explorer; and what its console said."""
    from tests.browser.conftest import serving

    use_shipped_models(home)
    shutil.copy(home / "limits.toml", home / "explorer.toml")
    with serving(home) as address, chromium() as browser:
        page, errors = browser.new_page(), []
        page.set_default_timeout(10_000)
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield page, address, errors


def _open(page, address, params):
    # On a busy machine the browser itself may need long; a server that does not answer at all is an error.
    page.goto(f"{address}/?{urllib.parse.urlencode(params)}", timeout=120_000, wait_until="commit")
    with contextlib.suppress(Exception):  # a page that computes for long is attacked all the same
        page.wait_for_function(_SETTLED, timeout=60_000)


def _faults(page):
    """The error boxes that tell of a fault of the program."""
    boxes = page.locator("[data-testid=stAlert], [data-testid=stException]").all_inner_texts()
    return [text for text in boxes if any(words in text for words in (*FAULTS, "Traceback"))]


def scripts(rng, count, home, args):
    """Texts and parameters with scripts on random pages."""
    from ui.shell.catalogue import pages

    defects = []
    with _browser(home) as (page, address, _):
        for number in range(count):
            script, name = _SCRIPTS[number % len(_SCRIPTS)], rng.choice(list(pages()))
            key = rng.choice(["a", "b", "mask", "model", "page"])
            params = {"page": name, "a": "The cat sat.", "model": "bert-small-uncased-embedded", key: script}
            _open(page, address, params)
            for link in page.locator("a[href^='javascript:']").all():
                defects.append(f"{params}: a link {link.get_attribute('href')}")
            page.mouse.move(600, 400)
            if page.evaluate("() => window.ran"):
                defects.append(f"{params}: it ran")
    return count, defects


def monkey(rng, count, home, args):
    """Random presses on every page in turn, with random shipped models, for so many minutes."""
    from tests.campaign.explorer import shipped_models
    from ui.shell.catalogue import pages

    defects, presses, most = [], 0, 0
    order = [name for name in pages()]
    rng.shuffle(order)
    with _browser(home) as (page, address, errors):
        server = ServerProcess(address.rpartition(":")[2])
        end, turn = time.monotonic() + 60 * args.minutes, 0
        while time.monotonic() < end:
            where, model = order[turn % len(order)], rng.choice(shipped_models())
            turn += 1
            _open(page, address, {"page": where, "model": model})
            for _ in range(rng.randrange(3, 9)):
                if time.monotonic() > end:
                    break
                places = page.locator(_PRESSED).and_(page.locator(f":visible:not({_LEFT_OUT}):not([disabled])"))
                with contextlib.suppress(Exception):  # it may have gone, or something may lie above it
                    places.nth(rng.randrange(max(1, places.count()))).click(timeout=2000)
                    presses += 1
                    page.wait_for_function(_SETTLED, timeout=20_000)
                defects += [f"{where}, {model}: {text}"[:300] for text in _faults(page)]
                most = max(most, server.megabytes)
            defects += [f"{where}, {model}: console: {text}"[:300] for text in errors]
            errors.clear()
    if args.megabytes and most > args.megabytes:
        defects.append(f"the server held {most:,.0f} MB, over {args.megabytes:,}")
    print(f"{turn} pages, {presses:,} presses, the server held at most {most:,.0f} MB")
    return presses, list(dict.fromkeys(defects))
