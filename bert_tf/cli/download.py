"""`download NAME`: a released model into the models folder, going on where an earlier one was cut."""

import sys


def add_arguments(parser):
    parser.add_argument("name", metavar="NAME", help="a name that `models` lists")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args):
    from tqdm import tqdm

    from bert_tf.checkpoints import download

    bar = None

    def progress(done, total):
        # Made at the first bytes: a name that is not known gets one line of error and no empty bar above it.
        nonlocal bar
        if bar is None:
            bar = tqdm(unit="B", unit_scale=True, unit_divisor=1000, disable=args.quiet, file=sys.stderr)
        bar.total = total or None
        bar.update(done - bar.n)

    try:
        path = download(args.name, progress=progress)
    finally:
        if bar is not None:
            bar.close()
    print(path)
    return 0
