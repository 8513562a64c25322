"""How soon a first visitor sees the title, the page and its predictions, in a real Chromium.

    python benchmarks/first_visit.py [--rounds 5]

Each round starts the explorer anew and opens its address in a new profile of a browser that is already open: nothing is
in the browser's cache, and the server has imported nothing but Streamlit. Then a second new profile opens the same
address: the server has everything by then. Prints the milliseconds from the request to the first frame with a title,
to the title of the page, and to the predictions: the median and the slowest of all rounds.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.clicks import chromium, explorer  # noqa: E402

#: What is timed -> the selector of what the visitor then sees; one after another.
SIGNS = {"a title": "h1", "the page's title": "h1:has-text('Predict')", "predictions": ".bars .bar"}


def visit(browser, address):
    """The milliseconds from the request of the page to each of SIGNS, for a visitor with an empty cache."""
    times = {}
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        page.goto(address, wait_until="commit")
        for sign, selector in SIGNS.items():
            page.locator(selector).first.wait_for(timeout=120_000)
            times[sign] = page.evaluate("performance.now()")
    return times


def main():
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    waits = {"after the start": [], "later": []}
    with chromium() as browser:
        for _ in range(options.rounds):
            with explorer() as address:
                for visits in waits.values():
                    visits.append(visit(browser, address))
    print(f"{'server':18}{'until':18}{'median ms':>11}{'slowest ms':>12}")
    for server, visits in waits.items():
        for sign in SIGNS:
            times = [times[sign] for times in visits]
            print(f"{server:18}{sign:18}{statistics.median(times):11.0f}{max(times):12.0f}")


if __name__ == "__main__":
    main()
