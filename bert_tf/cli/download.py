"""`python -m bert_tf download NAME`: downloads a model of the hub; resumes an interrupted download."""

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `download` to an `argparse` parser."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a name from the list of `models`, or any model of the hub as OWNER/NAME[@REVISION]",
    )
    parser.add_argument("--look", action="store_true", help="only say what the repository OWNER/NAME holds")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Downloads the model into the models folder and prints its path. Returns: exit code."""
    from tqdm import tqdm

    from bert_tf.checkpoints import download, look_up, released
    from bert_tf.errors import DownloadError

    if args.look:
        model = released(args.name)
        repository = look_up(args.name if model is None else model.repo)
        print(" · ".join(repository.facts()))
        if repository.problem:
            raise DownloadError(repository.problem)
        return 0
    bar = None
    notes: list[str] = []

    def note(text):
        if bar is None:
            print(text, file=sys.stderr)  # what the repository holds, before its weights are fetched
        else:
            notes.append(text)

    def progress(done, total):
        # The bar is made with the first bytes, so that an unknown name prints no empty bar above its error.
        nonlocal bar
        if bar is None:
            if not done:
                return
            bar = tqdm(unit="B", unit_scale=True, unit_divisor=1000, disable=args.quiet, file=sys.stderr)
        bar.total = total or None
        bar.update(done - bar.n)

    try:
        path = download(args.name, progress=progress, note=note)
    finally:
        if bar is not None:
            bar.close()
    print(*notes, sep="\n", end="\n" if notes else "", file=sys.stderr)
    print(path)
    return 0
