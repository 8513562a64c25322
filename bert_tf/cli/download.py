"""`download NAME`: a released model into the models folder, with progress; goes on where an earlier one was cut."""

import sys


def add_arguments(parser):
    parser.add_argument("name", metavar="NAME", help="a name that `models` lists")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args):
    from tqdm import tqdm

    from bert_tf.checkpoints import download

    with tqdm(unit="B", unit_scale=True, unit_divisor=1000, disable=args.quiet, file=sys.stderr) as bar:

        def progress(done, total):
            bar.total = total or None
            bar.update(done - bar.n)

        path = download(args.name, progress=progress)
    print(path)
    return 0
