"""Time of one press on two or more states of the project, in turn, in one run: what a change gains or costs.

    python benchmarks/presses_in_turn.py before=../old after=. [--page predict] [--tokens 32] [--presses 24]
        [--model bert-base-cased-embedded] [--json FILE]

Each state is a folder with the whole project, such as a clone at an older commit. The script starts the explorer of
each, opens the page in one Chromium, a tab for each explorer, and presses the same word in every tab, one after the
other, with nothing beside it. So a machine that slows down slows all of them. The presses and the times are those of
``benchmarks/clicks.py``; the ratio is the median over the turns of each state's time divided by the first state's time
in the same turn.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import sys

import clicks


def measure(addresses, name, tokens, model, presses):
    """For each address a list of (milliseconds to the press's end, milliseconds to its last drawing or None)."""
    times = {address: [] for address in addresses}
    with clicks.chromium() as browser:
        tabs = {address: browser.new_page(viewport={"width": 1440, "height": 900}) for address in addresses}
        for address, tab in tabs.items():
            tab.set_default_timeout(180_000)
            clicks.open_page(tab, address, name, tokens, model)
        for turn in range(clicks.UNCOUNTED + presses):
            for address, tab in tabs.items():
                tab.bring_to_front()
                times[address].append(clicks.press(tab, name, turn))
    return {address: of_one[clicks.UNCOUNTED :] for address, of_one in times.items()}


def main():
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("states", nargs="+", type=clicks.state, metavar="NAME=FOLDER")
    parser.add_argument("--page", choices=clicks.PRESSES, default="predict", metavar="PAGE")
    parser.add_argument("--tokens", type=int, choices=clicks.REPETITIONS, default=32)
    parser.add_argument("--presses", type=int, default=24)
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        names = {stack.enter_context(clicks.explorer(root=folder)): name for name, folder in options.states}
        times = measure(list(names), options.page, options.tokens, options.model, options.presses)
    first = next(iter(times.values()))
    print(f"{'state':20}{'median ms':>10}{'least':>7}{'drawn':>7}{'ratio':>7}")
    rows = []
    for address, of_one in times.items():
        ends = [end for end, _ in of_one]
        row = {
            "state": names[address],
            "median_ms": statistics.median(ends),
            "least_ms": min(ends),
            "drawn_ms": statistics.median(drawn or end for end, drawn in of_one),
            "ratio": statistics.median(end / other for end, (other, _) in zip(ends, first)),
        }
        rows.append(row)
        print(
            f"{row['state']:20}{row['median_ms']:10.0f}{row['least_ms']:7.0f}{row['drawn_ms']:7.0f}{row['ratio']:7.2f}"
        )
    if options.json:
        options.json.write_text(json.dumps({"page": options.page, "tokens": options.tokens, "rows": rows}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
