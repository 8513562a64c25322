"""The campaign: random attacks on one part of the project, each a number of tries from a seed, on this machine alone.

    python -m tests.campaign PART [--count N] [--seed S] [--minutes M]

PART is one of those below, or `all`. A row is printed for each part, and a line for each defect;
the exit code is 1 if there is one. docs/explanation/reliability.md has the measured table.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

#: Part -> (module, number of tries, what a defect is).
PARTS = {
    "kills": ("library", 26, "weights after SIGKILLs differ from those of an unbroken run"),
    "downloads": ("library", 26, "a wrong file is accepted, or an error is no sentence"),
    "mistakes": ("mistakes", 1022, "a command ends with a traceback, or its message is none for a reader"),
    "folders": ("library", 200, "a broken model gives other numbers or a traceback"),
    "links": ("explorer", 1000, "a page shows a traceback or a fault"),
    "sessions": ("explorer", 500, "a page shows a traceback or a fault"),
    "scripts": ("browser", 32, "a script of a text runs"),
    "soak": ("soak", 1000, "a fault on a page or in the log, or more memory than --megabytes"),
    "monkey": ("browser", None, "a console error, an error of the program, or more memory than --megabytes"),
}
#: What the server may hold: `max_megabytes` of explorer.toml and 600 MB more.
_MEGABYTES = 2600


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--count", type=int, help="tries (default: as in docs/explanation/reliability.md)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10, help="of the monkey (default 10)")
    parser.add_argument(
        "--limit", type=float, help="seconds after which `kills`, `links` and `sessions` end before their count"
    )
    parser.add_argument(
        "--megabytes",
        type=int,
        default=_MEGABYTES,
        help=f"of memory that the server may hold under `soak` and the monkey (default {_MEGABYTES:,})",
    )
    args = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"  # no hub but those that a part starts
    rows, defects = [], []
    for part in PARTS if args.part == "all" else [args.part]:
        module, count, _ = PARTS[part]
        functions = __import__(f"tests.campaign.{module}", fromlist=[part])
        since = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
            tries, failures = getattr(functions, part)(
                random.Random(args.seed), count if args.count is None else args.count, Path(folder), args
            )
        rows.append(f"| {part} | {tries:,} | {len(failures)} | {time.monotonic() - since:,.0f} |")
        defects += [f"{part}: {one}" for one in failures]
    print("| part | tries | defects | seconds |\n|---|---|---|---|", *rows, *defects, sep="\n", flush=True)
    return int(bool(defects))


if __name__ == "__main__":
    sys.exit(main())
