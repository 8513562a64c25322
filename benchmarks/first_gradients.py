"""The first gradients on a server: their time, and the server's memory before and after them.

    python benchmarks/first_gradients.py [NAME=FOLDER ...] [--rounds 4] [--json FILE]

Each state is a folder with the whole project, such as a clone at an older commit; by default this one. The script
starts the explorer of each in turn. A visitor, by Streamlit's own protocol, opens Predict with a pair of 32 tokens,
then Saliency, whose integrated gradients import TensorFlow and build the Keras model. They have ended when the server
uses no processor any more. Prints the medians of all rounds.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.clicks import TEXT_A, TEXT_B, explorer, state  # noqa: E402
from benchmarks.visitor import ServerProcess, Visitor  # noqa: E402

IDLE = 5.0  # seconds without work after which the gradients have ended
STEP, WORK = 0.5, 0.02  # seconds between two looks at the processor time, and its seconds that count as work


def measure(folder):
    """Of the explorer in ``folder``: {"predict_megabytes", "saliency_megabytes", "seconds"}."""
    with explorer(root=folder) as address:
        process, visitor = ServerProcess(address.rpartition(":")[2]), Visitor(address)
        visitor.open(page="predict", a=TEXT_A, b=TEXT_B, mask="a1")
        _wait_until_idle(process)
        before, start = process.megabytes, time.perf_counter()
        _, failed = visitor.open(page="saliency", a=TEXT_A, b=TEXT_B, mask="a1")
        if failed:
            sys.exit(f"Saliency of {folder} shows an error.")
        end = _wait_until_idle(process)
        row = {"predict_megabytes": before, "saliency_megabytes": process.megabytes, "seconds": end - start}
        visitor.close()
        return row


def _wait_until_idle(process):
    """Waits until the server has not worked for a while. Returns: when it did so last, on the clock of performance."""
    worked, used = time.perf_counter(), process.cpu_seconds
    while time.perf_counter() - worked < IDLE:
        time.sleep(STEP)
        if process.cpu_seconds - used > WORK:
            worked = time.perf_counter()
        used = process.cpu_seconds
    return worked


def main():
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("states", nargs="*", type=state, metavar="NAME=FOLDER", default=[("here", ROOT)])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    folders = dict(options.states)
    rounds = [{name: measure(folder) for name, folder in folders.items()} for _ in range(options.rounds)]
    rows = {
        name: {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]} for name in folders
    }
    print(f"{'state':16}{'MB on Predict':>15}{'MB after Saliency':>19}{'seconds':>9}")
    for name, row in rows.items():
        print(f"{name:16}{row['predict_megabytes']:15.0f}{row['saliency_megabytes']:19.0f}{row['seconds']:9.1f}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
