"""Time from a click to the new view on the screen, for every page, in a real Chromium.

    python benchmarks/clicks.py [--model bert-base-cased-embedded] [--clicks 12] [--pages predict attention]
        [--tokens 32 128 512] [--json FILE]

Starts the explorer, opens each page on a pair of 32, of 128 and of 512 tokens, and clicks the main control of the
page: a word, a head, a cell or a box; if a page has none, the link that opens it. The time is measured inside the
page, from the click to the first frame after the server's response is complete and the view has changed: it includes
the request, the forward pass, the response and the drawing. Background jobs (sweeps, gradients, files) display a
progress bar: then the time ends when the bar, or the result, is on the screen. A page that does not respond is named,
and the other pages are still measured; the exit code is then 1.

The column "drawn" is the time to the first frame after the last change of a drawing of the page's own components, such
as predictions, the next-sentence gauge and attention lines: what comes after it (menus, the link, the address) is not
counted. It is "-" for pages without such drawings.

All clicks of a session count except the first three. Each click masks or unmasks another word, and no set of masked
words occurs twice in a session, so no click is answered from a cache. Heads, cells and boxes are opened in turn, for
the same texts; some are repeated if there are fewer of them than clicks.
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.installed_chromium import find_chromium  # noqa: E402
from ui.shell import catalogue  # noqa: E402
from ui.shell.page import SECTIONS  # noqa: E402

TEXT_A = "The people of the city walked along the river and looked at the boats on the water."
TEXT_B = "Some of them stayed there until the sun went down."
#: Number of tokens of the pair -> how often each text is repeated, and its end.
REPETITIONS = {32: (1, 1, ""), 128: (5, 3, " And so"), 512: (24, 7, "")}
TARGETS = {32: 400, 128: 1000, 512: 1500}  # milliseconds
UNCOUNTED = 3  # first clicks of a session, in which the engine and the browser compile

OTHER_A = TEXT_A.replace("boats", "birds")  # the same number of tokens, as patching requires


#: "page", or "page:view" for views of different cost -> what is clicked there.
PRESSES = {
    name + (f":{part}" if part else ""): press
    for name, page in catalogue.pages().items()
    for part, press in page.presses.items()
}
# Requests and responses are counted, because a run can begin and end between two frames.
COUNT = """() => {
  window.asked = window.answered = 0;
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (...parts) {
    if (!this.counted) this.addEventListener('message', () => window.answered++);
    this.counted = true;
    window.asked++;
    window.answered = 0;
    return send.apply(this, parts);
  };
}"""
PRESS = """async ([act, turn, spot]) => {
  const shadows = () => [...document.querySelectorAll('*')].map((one) => one.shadowRoot).filter(Boolean);
  const roots = () => [document, ...shadows()];
  const find = (what) => roots().map((root) => root.querySelector(what)).find(Boolean);
  const every = (what) => roots().flatMap((root) => [...root.querySelectorAll(what)]);
  const app = document.querySelector('[data-testid=stApp]');
  const running = () => ['running', 'rerunRequested'].includes(app.dataset.testScriptState);
  const shown = () => [document.querySelector('[data-testid=stMain]').innerText, ...shadows().map((root) =>
    root.querySelector('.chips') || root.querySelector('.sections') ? '' : root.textContent), location.search,
    ...every('.wires path').map((path) => path.getAttribute('d'))].join(' ');
  const frame = () => new Promise(requestAnimationFrame);
  const press = () => {
    if (act === 'head' || act === 'zoom') {
      const canvas = find('.board canvas');
      const box = canvas.getBoundingClientRect();
      const at = (share, size) => 22 + (size - 22) * share;
      const place = { clientX: box.left + at(.06 + .11 * (turn % 8), box.width),
        clientY: box.top + at(.3 + .05 * (turn % 5), box.height) };
      canvas.dispatchEvent(new MouseEvent('click', { bubbles: true, composed: true, ...place }));
    } else if (spot) {
      find(`button[data-spot="${spot}"]`).click();
    } else {
      const all = targets();
      // The open one is pressed by nobody.
      const others = all.slice(0, 9).filter((one) => !['aria-checked', 'aria-pressed', 'aria-selected', 'aria-current']
        .some((name) => ['true', 'page'].includes(one.getAttribute(name))));
      (others[turn % others.length] ?? all[0]).click();
    }
  };
  const [kind, label, names] = act.split(': ');
  const board = '.board canvas[style]';
  function targets() {
    if (kind === 'open') return every('a').filter((link) => link.textContent === label && link.href.includes('page='));
    if (kind === 'choice') {
      const groups = every('[data-testid=stButtonGroup]');
      const group = groups.find((one) => one.querySelector('label')?.textContent.trim() === label);
      const all = [...(group?.querySelectorAll('[role=radio]') ?? [])];
      return names ? all.filter((one) => names.split('|').includes(one.textContent.trim())) : all;
    }
    return every({ head: board, zoom: board, chip: 'button.chip', word: 'button.chip' }[act] ?? act);
  }
  for (const began = performance.now(); !targets().length;) {
    if (performance.now() - began > 60000) throw new Error(`there is no ${act} to press`);
    await frame();
  }
  const before = shown();
  window.asked = window.answered = 0;
  let drawn = null;
  const began = performance.now();
  const note = () => requestAnimationFrame(() => drawn = performance.now() - began);
  const drawings = new MutationObserver(note);
  for (const host of document.querySelectorAll('[data-testid=stMain] *')) {
    // The strip of tokens answers a press before the server does.
    if (!host.shadowRoot || host.shadowRoot.querySelector('.chips')) continue;
    drawings.observe(host.shadowRoot, { subtree: true, childList: true, attributes: true, characterData: true });
  }
  press();
  let ended = 0;
  for (let isOver = false; !isOver;) {
    await frame();
    if (window.asked && window.answered && !running()) {
      await frame();
      ended = performance.now() - began; // before the texts are compared, which takes 10 ms and is no part of a press
      isOver = shown() !== before;
    }
    if (!isOver && performance.now() - began > 60000) {
      const asked = window.asked ? 'asked' : 'not asked';
      throw new Error(`nothing new; the server was ${asked}, state ${app.dataset.testScriptState}`);
    }
  }
  await new Promise((resolve) => setTimeout(resolve, 400)); // the browser may draw what came last after the run's end
  drawings.disconnect();
  return [ended, drawn];
}"""


def state(text):
    """(name, folder) of a state of the project, from "NAME=FOLDER" on a command line."""
    name, separator, folder = text.partition("=")
    root = pathlib.Path(folder).resolve()
    if not separator or not (root / "app.py").is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FOLDER with a folder that holds app.py.")
    return name, root


@contextlib.contextmanager
def explorer(environment=None, root=ROOT, log=None):
    """Starts the explorer of the project in the folder ``root`` on a free port and yields its address.

    Args:
        environment: dict of further environment variables. root: Path. log: Path of the file that keeps what the server
            writes; None: nothing is kept.
    """
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    with log.open("wb") if log else tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "streamlit",
                "run",
                str(root / "app.py"),
                "--server.port",
                str(port),
                "--server.address",
                "127.0.0.1",
                "--server.headless",
                "true",
            ],
            cwd=root,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield _wait_for(f"http://127.0.0.1:{port}", process)
        finally:
            process.terminate()
            try:
                process.wait(20)
            finally:
                process.kill()
                process.wait()


def _wait_for(address, process):
    for _ in range(240):
        if process.poll() is not None:
            raise RuntimeError(f"The explorer ended at once, with code {process.returncode}.")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return address
        except OSError:
            time.sleep(0.25)
    raise RuntimeError("The explorer did not answer within a minute.")


@contextlib.contextmanager
def chromium():
    """Starts the installed Chromium without a graphics card and yields Playwright's browser."""
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    if path is None:
        raise SystemExit("There is no Chromium on the PATH: apt-get install chromium.")
    switches = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=path, args=switches) as browser:
        yield browser


def texts(tokens):
    """Text A and text B, which together have this number of tokens."""
    times_a, times_b, end = REPETITIONS[tokens]
    return " ".join([TEXT_A] * times_a), " ".join([TEXT_B] * times_b) + end


def spot_to_press(press, turn):
    """The word that click ``turn``, from 0, is on, as in a link; None if no words are clicked.

    The words are masked and unmasked in the order of a Gray code, in which no set of masked words occurs twice.
    """
    if press == "chip":
        return f"a{1 + ((turn + 1) & -(turn + 1)).bit_length()}"
    return f"a{(2 + turn) % len(TEXT_A.split())}" if press == "word" else None


SETTLED = """(stops) => {
  const stop = document.querySelector('[class*=st-key-w_stop_] button');
  if (stops) stop?.click();
  const running = document.querySelector('[data-testid=stApp]').dataset.testScriptState !== 'notRunning';
  return !running && !stop && !document.querySelector('[data-testid=stSpinner]');
}"""


def settled(page, stops=False):
    """Waits until no run and no background job is active; ``stops``: stop background jobs."""
    page.get_by_role("heading", level=1).wait_for()
    page.wait_for_function(SETTLED, arg=stops, polling=500 if stops else "raf")
    page.wait_for_timeout(600)


def measure(page, address, name, tokens, model, clicks):
    """For each of ``clicks`` clicks on the page ``name``: milliseconds to its end, and to its last drawing or None."""
    open_page(page, address, name, tokens, model)
    return [press(page, name, turn) for turn in range(UNCOUNTED + clicks)][UNCOUNTED:]


def open_page(page, address, name, tokens, model):
    """Opens the page ``name`` on a pair of ``tokens`` tokens in the browser's tab ``page``, and waits for it."""
    act = PRESSES[name]
    text_a, text_b = texts(tokens)
    link = {"page": name.partition(":")[0], "a": text_a, "b": text_b, "model": model, **act.link}
    if link["page"] == "patching":
        link["patching.a"] = " ".join([OTHER_A] * REPETITIONS[tokens][0])
    page.add_init_script(f"({COUNT})()")
    page.goto(f"{address}/?{urllib.parse.urlencode(link)}")
    settled(page, act.long)


def press(page, name, turn):
    """Click number ``turn`` of a session on the open page: milliseconds to its end, and to its last drawing or None."""
    act = PRESSES[name]
    if act.what == "open":
        _leave(page, name)
    times = page.evaluate(PRESS, [_pressed(name), turn, spot_to_press(act.what, turn)])
    settled(page, act.long)
    if act.what == "zoom":
        page.get_by_role("button", name="All heads").click()
        page.locator(".board canvas").wait_for()
        settled(page)
    return times


def _pressed(name):
    """The clicked element in the form of the browser's script: for a link its text."""
    what, page = PRESSES[name].what, catalogue.pages()[name.partition(":")[0]]
    return f"open: {page.title}" if what == "open" else what


def _leave(page, name):
    """Opens another page of the same section of the navigation, so that the link to the page can be clicked."""
    left = catalogue.pages()[name]
    groups = next(groups for groups in SECTIONS.values() if left.group in groups)
    away = next(one for one in catalogue.pages().values() if one.group in groups and one is not left)
    page.get_by_role("link", name=away.title, exact=True).first.click()
    page.get_by_role("heading", level=1, name=away.title, exact=True).wait_for()
    settled(page)


def summary(name, tokens, times):
    """The measurements of one page and length as a dict; ``times``: see `measure`."""
    drawn = [one for _, one in times if one is not None]
    times = sorted(end for end, _ in times)
    return {
        "page": name,
        "tokens": tokens if PRESSES[name].of_texts else None,
        "clicks": len(times),
        "median_ms": statistics.median(times),
        "p90_ms": times[math.ceil(0.9 * len(times)) - 1],
        "least_ms": times[0],
        "most_ms": times[-1],
        "drawn_ms": statistics.median(drawn) if drawn else None,
        "target_ms": TARGETS[tokens],
        "load_average": os.getloadavg()[0],
    }


def table_line(row):
    """A line of the table."""
    tokens = "-" if row["tokens"] is None else row["tokens"]
    if "problem" in row:
        return f"{row['page']:20}{tokens:>7}  failed: {row['problem']}"
    drawn = "-" if row["drawn_ms"] is None else f"{row['drawn_ms']:.0f}"
    return (
        f"{row['page']:20}{tokens:>7}{row['median_ms']:11.0f}{row['p90_ms']:7.0f}{row['least_ms']:7.0f}{drawn:>7}"
        f"{row['target_ms']:8}  (load average {row['load_average']:.1f})"
    )


def run(address, model, clicks, pages, lengths):
    """One dict of measurements for each page and length, printed immediately; with "problem" if the page failed."""
    from playwright.sync_api import Error

    rows = []
    print(f"{'page':20}{'tokens':>7}{'median ms':>11}{'90%':>7}{'least':>7}{'drawn':>7}{'target':>8}")
    with chromium() as browser:
        for name in pages:
            for tokens in (
                [one for one in lengths if one <= PRESSES[name].most] if PRESSES[name].of_texts else lengths[:1]
            ):
                # A new session for each page, so that no cache of another page is used.
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.set_default_timeout(180_000)
                counted_tokens = tokens if PRESSES[name].of_texts else None
                try:
                    times = measure(page, address, name, tokens, model, clicks)
                    rows.append(summary(name, tokens, times))
                except Error as error:
                    rows.append({"page": name, "tokens": counted_tokens, "problem": str(error).splitlines()[0]})
                finally:
                    page.close()
                print(table_line(rows[-1]), flush=True)
    return rows


def main():
    """Measure and print a table. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--clicks", type=int, default=12)
    parser.add_argument("--pages", nargs="+", choices=PRESSES, default=list(PRESSES), metavar="PAGE")
    parser.add_argument("--tokens", nargs="+", type=int, choices=REPETITIONS, default=list(REPETITIONS), metavar="T")
    parser.add_argument("--address", help="address of a running explorer")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    started = contextlib.nullcontext(options.address) if options.address else explorer()
    with started as address:
        rows = run(address, options.model, options.clicks, options.pages, options.tokens)
    if options.json:
        options.json.write_text(json.dumps({"model": options.model, "pages": rows}, indent=2) + "\n")
    return int(any("problem" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
