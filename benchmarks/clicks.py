"""From a click to the new view on the screen, for every page that can be acted on, in a real Chromium.

    python benchmarks/clicks.py [--model bert-base-cased-embedded] [--clicks 12] [--pages predict attention]
        [--tokens 32 128] [--json FILE]

Starts the explorer, opens each page on a pair of 32 and of 128 tokens, and presses: a word, a head, a cell, a
box, whatever the page is for. The time runs inside the page, from the press to the first frame after the
server's answer is complete and what is shown has changed: the way to the server, the forward pass, the way
back and the drawing are all in it. Sweeps and gradients, which show a bar, are not measured here.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
TEXT_A = "The people of the city walked along the river and looked at the boats on the water."
TEXT_B = "Some of them stayed there until the sun went down."
#: How often each text is said, and what ends it, by the number of tokens that the pair then has.
TIMES = {32: (1, 1, ""), 128: (5, 3, " And so")}
TARGETS = {32: 500, 128: 1500}  # milliseconds

#: Page -> (what is pressed, parameters of the link). "chip" is a word of the strip, "head" a place of the
#: canvas of all heads, "zoom" one that opens another view, anything else elements of the page.
ACTS = {
    "predict": ("chip", {"mask": "a1"}),
    "attention": ("head", {}),
    "modelview": ("zoom", {}),
    "neuron": (".query", {}),
    "methods": ("button.token", {}),
    "heads": ("head", {}),
    "lens": ("chip", {"mask": "a1"}),
    "ablation": ("td[data-at]", {"mask": "a1"}),
    "inputsum": ("chip", {}),
    "neighbours": ("td[data-at]", {}),
    "compare": ("chip", {"mask": "a1"}),
    "architecture": ("button[data-name]", {}),
}
PRESS = """async ([act, turn]) => {
  const shadows = () => [...document.querySelectorAll('*')].map((one) => one.shadowRoot).filter(Boolean);
  const roots = () => [document, ...shadows()];
  const find = (what) => roots().map((root) => root.querySelector(what)).find(Boolean);
  const every = (what) => roots().flatMap((root) => [...root.querySelectorAll(what)]);
  const app = document.querySelector('[data-testid=stApp]');
  const running = () => ['running', 'rerunRequested'].includes(app.dataset.testScriptState);
  const shown = () => [document.querySelector('[data-testid=stMain]').innerText, ...shadows().map((root) =>
    root.querySelector('.chips') || root.querySelector('.nav') ? '' : root.textContent), location.search,
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
    } else if (act === 'chip') {
      find(`button[data-spot="a${2 + Math.floor(turn / 2) % 8}"]`).click();
    } else {
      const all = every(act);
      all[(turn + 2) % Math.min(all.length, 9)].click();
    }
  };
  const board = '.board canvas[style]';
  const target = { head: board, zoom: board, chip: 'button.chip' }[act] ?? act;
  for (let frames = 0; !find(target); frames++) {
    if (frames > 3600) throw new Error(`there is no ${target} to press`);
    await frame();
  }
  const before = shown();
  const began = performance.now();
  press();
  let ran = false;
  for (;;) {
    await frame();
    ran = ran || running();
    const now = performance.now() - began;
    if (ran && !running() && shown() !== before) break;
    if (now > 60000) throw new Error(`nothing new; the server ${ran ? 'answered' : 'was not asked'}`);
  }
  await frame();
  return performance.now() - began;
}"""


@contextlib.contextmanager
def explorer(environment=None):
    """The explorer on a free port: yields its address."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        port = place.getsockname()[1]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "streamlit",
                "run",
                str(ROOT / "app.py"),
                "--server.port",
                str(port),
                "--server.address",
                "127.0.0.1",
                "--server.headless",
                "true",
            ],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield _wait_for(f"http://127.0.0.1:{port}", process)
        finally:
            process.terminate()
            process.wait(20)


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


def texts(tokens):
    """Text A and text B that make so many tokens together."""
    times_a, times_b, end = TIMES[tokens]
    return " ".join([TEXT_A] * times_a), " ".join([TEXT_B] * times_b) + end


def settled(page):
    """Wait until nothing runs any more and nothing is worked out beside the page."""
    page.get_by_role("heading", level=1).wait_for(timeout=180_000)
    page.wait_for_function(
        """() => document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'
        && !document.querySelector('[data-testid=stSpinner], [data-testid=stProgress]')""",
        timeout=180_000,
    )
    page.wait_for_timeout(600)


def measure(page, address, name, tokens, model, clicks):
    """Milliseconds of each of ``clicks`` presses on the page called ``name``."""
    act, extra = ACTS[name]
    text_a, text_b = texts(tokens)
    link = urllib.parse.urlencode({"page": name, "a": text_a, "b": text_b, "model": model, **extra})
    page.goto(f"{address}/?{link}")
    settled(page)
    times = []
    # The first three are not counted: TensorFlow and the browser compile.
    for turn in range(clicks + 3):
        times.append(page.evaluate(PRESS, [act, turn]))
        settled(page)
        if act == "zoom":
            page.get_by_role("button", name="All heads").click()
            page.locator(".board canvas").wait_for()
            settled(page)
    return times[3:]


def run(address, model, clicks, pages, lengths):
    """One dict of figures a page and length, printed as they come."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("There is no Chromium on the PATH: apt-get install chromium.")
    rows = []
    print(f"{'page':14}{'tokens':>7}{'median ms':>11}{'90%':>7}{'least':>7}{'target':>8}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name in pages:
            for tokens in lengths:
                # A visitor of its own for each: nothing kept by another page is timed.
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                times = sorted(measure(page, address, name, tokens, model, clicks))
                page.close()
                rows.append(
                    {
                        "page": name,
                        "tokens": tokens,
                        "clicks": len(times),
                        "median_ms": statistics.median(times),
                        "p90_ms": times[int(0.9 * (len(times) - 1))],
                        "least_ms": times[0],
                        "most_ms": times[-1],
                        "target_ms": TARGETS[tokens],
                        "load_average": os.getloadavg()[0],
                    }
                )
                row = rows[-1]
                print(
                    f"{name:14}{tokens:7}{row['median_ms']:11.0f}{row['p90_ms']:7.0f}{row['least_ms']:7.0f}"
                    f"{row['target_ms']:8}  (load average {row['load_average']:.1f})",
                    flush=True,
                )
        browser.close()
    return rows


def main():
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--clicks", type=int, default=12)
    parser.add_argument("--pages", nargs="+", choices=ACTS, default=list(ACTS), metavar="PAGE")
    parser.add_argument("--tokens", nargs="+", type=int, choices=TIMES, default=list(TIMES), metavar="T")
    parser.add_argument("--address", help="of an explorer that runs already")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    started = contextlib.nullcontext(options.address) if options.address else explorer()
    with started as address:
        rows = run(address, options.model, options.clicks, options.pages, options.tokens)
    if options.json:
        options.json.write_text(json.dumps({"model": options.model, "pages": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
