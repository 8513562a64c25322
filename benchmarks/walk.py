"""How evenly the page Walk through moves: the time between frames at each of its steps, in a real Chromium.

    python benchmarks/walk.py [--model bert-base-cased-embedded] [--rounds 3] [--tokens 32] [--width 1440]

Starts the explorer, opens Walk through on a pair of texts, and goes to every step in turn. At each step the times
between frames are taken until nothing moves any more, for at least a second and at most six. Prints for each step the
frames a second, the longest time between two frames, and how many took over 50 ms; the first frame of a step has its
drawing in it. Then the size of the page's own code and of the data of the texts.

Chromium runs without a graphics card here (`--disable-gpu`): the processor paints.
"""

import argparse
import json
import pathlib
import statistics
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from benchmarks.clicks import REPETITIONS, ROOT, chromium, explorer, settled, texts  # noqa: E402

FRAMES = """async (index) => {
  const roots = [document, ...[...document.querySelectorAll('*')].map((one) => one.shadowRoot).filter(Boolean)];
  const walk = roots.map((root) => root.querySelector('.walk')).find(Boolean);
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const times = [await frame()];
  walk.querySelectorAll('.stop')[index].click();
  const moving = () => walk.getAnimations({ subtree: true }).some((one) => one.playState === 'running');
  do times.push(await frame()); while (times.at(-1) - times[0] < 6000 && (moving() || times.at(-1) - times[0] < 1000));
  const stop = walk.querySelectorAll('.stop')[index];
  return { name: stop.innerText.replace(/\\s+/g, ' '), times: times.slice(1).map((time, at) => time - times[at]),
    data: JSON.stringify(walk.walk.data).length };
}"""
SLOW = 50  # milliseconds


def measure(address, model, rounds, tokens, width):
    """(dict from the name of a step to the milliseconds between its frames, characters of the data)."""
    first, second = texts(tokens)
    query = urllib.parse.urlencode({"page": "walk_through", "model": model, "a": first, "b": second, "mask": "a3"})
    step_times, data = {}, 0
    with chromium() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(f"{address}/?{query}")
        page.locator(".walk .stop").first.wait_for(timeout=120_000)
        settled(page)
        count = page.locator(".walk .stop").count()
        for _ in range(rounds):
            # The first step is open: begin with the second, so that every press draws a step.
            for index in (*range(1, count), 0):
                step = page.evaluate(FRAMES, index)
                step_times.setdefault(step["name"], []).extend(step["times"])
                data = step["data"]
                page.wait_for_timeout(300)
    return step_times, data


def main():
    """Measure and print a table. Returns the exit code: 1 if a frame took over 50 ms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, choices=REPETITIONS, default=32)
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    with explorer() as address:
        step_times, data = measure(address, options.model, options.rounds, options.tokens, options.width)
    print(f"{'step':20}{'frames':>8}{'a second':>10}{'longest ms':>12}{'over 50 ms':>12}")
    for name, times in sorted(step_times.items()):
        slow = sum(time > SLOW for time in times)
        print(f"{name:20}{len(times):>8}{1000 / statistics.mean(times):>10.1f}{max(times):>12.1f}{slow:>12}")
    code = [ROOT / "assets" / "components" / name for name in ("walk.html", "walk.css", "walk.js", "shared.js")]
    print(f"code {sum(path.stat().st_size for path in code) / 1000:.0f} kB, data {data / 1000:.0f} kB")
    if options.json:
        options.json.write_text(json.dumps(step_times, indent=1) + "\n")
    return int(any(time > SLOW for times in step_times.values() for time in times))


if __name__ == "__main__":
    sys.exit(main())
