"""From a click on a word to new predictions on the screen, in a real Chromium.

    python benchmarks/clicks.py [--model bert-base-cased-embedded] [--clicks 40] [--json FILE]

Starts the explorer, opens a pair of 32 tokens, and presses one word after the other. The time runs inside the
page, from the press to the first frame in which the bars have changed: the way to the server, the forward
pass, the way back and the drawing are all in it.
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
PRESS = """async (spot) => {
  const roots = [...document.querySelectorAll('*')].map((one) => one.shadowRoot).filter(Boolean);
  const find = (what) => roots.map((root) => root.querySelector(what)).find(Boolean);
  const bars = find('.bars');
  const before = bars.textContent;
  const began = performance.now();
  find(`button[data-spot="${spot}"]`).click();
  while (bars.textContent === before) {
    if (performance.now() - began > 60000) throw new Error('no new predictions within a minute');
    await new Promise(requestAnimationFrame);
  }
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


def measure(address, model, clicks):
    """Milliseconds of each of ``clicks`` presses, and how many tokens the pair has."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("There is no Chromium on the PATH: apt-get install chromium.")
    link = urllib.parse.urlencode({"a": TEXT_A, "b": TEXT_B, "mask": "a1", "model": model})
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{address}/?{link}")
        page.locator(".bars .bar").first.wait_for(timeout=120_000)
        tokens = page.locator(".chips .chip").count()
        # The explorer compiles for the usual lengths and numbers of masks in the background; wait for that.
        page.wait_for_timeout(15_000)
        spots = [spot for word in range(2, 9) for spot in (f"a{word}", f"a{word}")]
        for spot in spots[:4]:
            page.evaluate(PRESS, spot)
        times = [page.evaluate(PRESS, spots[press % len(spots)]) for press in range(clicks)]
        browser.close()
    return times, tokens


def main():
    """Measure and print the median, the slowest tenth and the extremes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--clicks", type=int, default=40)
    parser.add_argument("--address", help="of an explorer that runs already")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    started = contextlib.nullcontext(options.address) if options.address else explorer()
    with started as address:
        times, tokens = measure(address, options.model, options.clicks)
    times.sort()
    figures = {
        "model": options.model,
        "tokens": tokens,
        "clicks": len(times),
        "median_ms": statistics.median(times),
        "p90_ms": times[int(0.9 * (len(times) - 1))],
        "least_ms": times[0],
        "most_ms": times[-1],
        "load_average": os.getloadavg()[0],
    }
    print(
        f"{options.model}, {tokens} tokens, {len(times)} clicks: median {figures['median_ms']:.0f} ms, "
        f"90% within {figures['p90_ms']:.0f} ms, least {times[0]:.0f}, most {times[-1]:.0f} "
        f"(load average {figures['load_average']:.1f})"
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
