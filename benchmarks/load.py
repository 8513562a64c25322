"""Many visitors at one explorer: how long each waits, and what the server spends.

    python benchmarks/load.py [--visitors 20] [--seconds 300] [--every 4] [--model bert-base-cased-embedded]
        [--sweep] [--json FILE]

Starts the explorer and opens it for many visitors by Streamlit's own protocol, without browsers. Each visitor masks
another word every four seconds, in turn on Predict, All heads and Side by side, in a pair of 32 tokens; the time is
from the request to the end of the run. `--sweep` adds one visitor who computes integrated gradients of 512 tokens all
the time. The first press of each visitor is not counted. Prints the median, the 95th percentile and the maximum, the
processor time of the server for a press, and its memory.
"""

import argparse
import json
import random
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.clicks import TEXT_A, TEXT_B, explorer, texts  # noqa: E402
from benchmarks.visitor import ServerProcess, Visitor  # noqa: E402

PAGES = ("predict", "all_heads", "side_by_side")
OTHER_MODEL = "bert-small-uncased-embedded"


def press(visitor, page, model, rng):
    """Mask some words of the pair on a page. Returns: seconds."""
    word_numbers = sorted(rng.sample(range(len(TEXT_A.split()) - 1), 3))
    mask = ",".join(f"a{number}" for number in word_numbers)
    seconds, failed = visitor.open(page=page, a=TEXT_A, b=TEXT_B, mask=mask, model=model, **{"with": OTHER_MODEL})
    if failed:
        raise RuntimeError(f"{page} shows an error")
    return seconds


def press_in_turn(address, number, args, start, times, errors):
    """One visitor: a press every `args.every` seconds, on one page after the other."""
    rng = random.Random(number)
    try:
        visitor = Visitor(address)
        press(visitor, PAGES[number % len(PAGES)], args.model, rng)
        start.wait()
        time.sleep(args.every * number / args.visitors)
        end, turn = time.monotonic() + args.seconds, number
        while time.monotonic() < end:
            due = time.monotonic() + args.every
            times.append((PAGES[turn % len(PAGES)], press(visitor, PAGES[turn % len(PAGES)], args.model, rng)))
            turn += 1
            time.sleep(max(0, due - time.monotonic()))
        visitor.close()
    except Exception as error:  # named at the end: the other visitors go on
        errors.append(f"visitor {number}: {error!r}")
        start.abort()


def sweep(address, model, stop, errors):
    """A visitor who computes integrated gradients of 512 tokens, of one masked word after the other."""
    text_a, text_b = texts(512)
    link = {"page": "saliency", "saliency.method": "integrated-gradients", "a": text_a, "b": text_b, "model": model}
    try:
        visitor, turn = Visitor(address), 0
        while not stop.is_set():
            if visitor.open(**link, mask=f"a{turn % 100}")[1]:
                raise RuntimeError("saliency shows an error")
            turn += 1
            for _ in range(20):  # the browser of a visitor looks at the progress bar
                stop.wait(1)
        visitor.close()
    except Exception as error:  # named at the end, as those of the other visitors
        errors.append(f"sweep: {error!r}")


def summary(times, presses_cpu, process, args):
    """The figures of a run: dict."""
    seconds = sorted(one for _, one in times)

    def at(share):
        return 1000 * seconds[min(len(seconds) - 1, int(share * len(seconds)))]

    return {
        "visitors": args.visitors,
        "sweep": args.sweep,
        "presses": len(seconds),
        "p50_ms": at(0.5),
        "p95_ms": at(0.95),
        "max_ms": 1000 * seconds[-1],
        "cpu_ms_per_press": 1000 * presses_cpu / len(seconds),
        "page_median_ms": {
            page: 1000 * statistics.median(one for name, one in times if name == page)
            for page in PAGES
            if any(name == page for name, _ in times)
        },
        "megabytes": process.megabytes,
        "most_megabytes": process.most_megabytes,
    }


def run(args):
    """Start an explorer, let the visitors press, and return the figures."""
    times, errors, stop = [], [], threading.Event()
    with explorer() as address:
        process = ServerProcess(address.rpartition(":")[2])
        start = threading.Barrier(args.visitors + 1)
        threads = [
            threading.Thread(target=press_in_turn, args=(address, number, args, start, times, errors))
            for number in range(args.visitors)
        ]
        for thread in threads:
            thread.start()
        sweeper = threading.Thread(target=sweep, args=(address, args.model, stop, errors))
        try:
            start.wait()
            if args.sweep:
                sweeper.start()
            cpu = process.cpu_seconds
            for thread in threads:
                thread.join()
            cpu = process.cpu_seconds - cpu
        except threading.BrokenBarrierError:
            raise RuntimeError("; ".join(errors)) from None
        finally:
            stop.set()
            if sweeper.is_alive():
                sweeper.join()
        if errors:
            raise RuntimeError("; ".join(errors))
        return summary(times, cpu, process, args)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--every", type=float, default=4, help="seconds between two presses of a visitor")
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--sweep", action="store_true", help="one more visitor computes gradients of 512 tokens")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    figures = run(args)
    print(
        f"{figures['presses']} presses of {args.visitors} visitors: median {figures['p50_ms']:.0f} ms, "
        f"95th percentile {figures['p95_ms']:.0f} ms, longest {figures['max_ms']:.0f} ms; "
        f"{figures['cpu_ms_per_press']:.0f} ms of processor time a press"
        f"{', with those of the sweep' if args.sweep else ''}; "
        f"{figures['megabytes']:,.0f} MB, at most {figures['most_megabytes']:,.0f} MB"
    )
    for page, median in figures["page_median_ms"].items():
        print(f"  {page}: median {median:.0f} ms")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
