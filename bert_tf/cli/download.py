"""`python -m bert_tf download NAME`: downloads a released model; resumes an interrupted download."""

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `download` to an `argparse` parser."""
    parser.add_argument("name", metavar="NAME", help="a name from the list of `models`")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Downloads the model into the models folder and prints its path. Returns: exit code."""
    from tqdm import tqdm

    from bert_tf.checkpoints import download

    bar = None
    notes: list[str] = []

    def progress(done, total):
        # The bar is made with the first bytes, so that an unknown name prints no empty bar above its error.
        nonlocal bar
        if bar is None:
            bar = tqdm(unit="B", unit_scale=True, unit_divisor=1000, disable=args.quiet, file=sys.stderr)
        bar.total = total or None
        bar.update(done - bar.n)

    try:
        path = download(args.name, progress=progress, note=notes.append)
    finally:
        if bar is not None:
            bar.close()
    print(*notes, sep="\n", end="\n" if notes else "", file=sys.stderr)
    print(path)
    return 0
