"""`explain ANALYSIS`: why a model answers as it does; every `Analysis` of the catalogue is a subcommand."""

import json
import math

import numpy as np

from bert_tf.analyses import catalogue
from bert_tf.cli.explain import (
    analysis as analysis_command,
)
from bert_tf.cli.explain import (
    files,
    models,
    pairs,
)
from bert_tf.cli.explain.shared import add_file_arguments, read_file
from bert_tf.cli.shared.files import writing
from bert_tf.cli.shared.model import add_model_arguments, load_model
from bert_tf.cli.shared.render import table
from bert_tf.errors import InputError, checked_pair

#: Name -> its `Kind`.
KINDS = {
    **pairs.KINDS,
    **files.KINDS,
    **models.KINDS,
}


def add_arguments(parser):
    """Add a subcommand for each analysis to an `argparse` parser."""
    kinds = parser.add_subparsers(metavar="ANALYSIS", required=True, dest="kind")
    for name, analysis in catalogue().items():
        title = analysis.summary[0].upper() + analysis.summary[1:] + "."
        own = kinds.add_parser(name, aliases=analysis.aliases, help=analysis.summary, description=title)
        analysis_command.add_arguments(own, analysis)
        own.set_defaults(analysis=analysis)
    for name, kind in KINDS.items():
        own = kinds.add_parser(name, help=kind.help, description=kind.help[0].upper() + kind.help[1:] + ".")
        if kind.add:
            kind.add(own)
        if kind.texts in ("pair", "or file"):
            optional = {"nargs": "?"} if kind.texts == "or file" else {}
            own.add_argument("text_a", metavar="TEXT_A", help='the text; "[MASK]" in it is a mask', **optional)
            own.add_argument("text_b", nargs="?", metavar="TEXT_B", help="a second text")
        if kind.texts in ("file", "or file"):
            add_file_arguments(own, required=kind.texts == "file")
        if kind.model:
            add_model_arguments(own)
        if kind.masks:
            own.add_argument("--mask", nargs="+", action="extend", default=[], metavar="WORD", help="words to mask")
        _add_output(own)


def _add_output(parser):
    parser.add_argument("--top-k", type=int, default=5, metavar="K", help="predictions or rows shown (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, all rows in it")
    parser.add_argument("--html", metavar="FILE", help="also write the figure as one HTML file that needs no network")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args):
    """Run the analysis that was asked for. Returns: exit code."""
    if getattr(args, "analysis", None) is not None:
        return analysis_command.run(args.analysis, args)
    kind = KINDS[args.kind]
    _check(kind, args)  # before the seconds that loading takes
    bert = load_model(args) if kind.model else None
    trace = None
    if kind.traced and args.text_a is not None:
        trace = bert.trace(args.text_a, args.text_b, args.mask)
    record, rows, aligns = kind.make(bert, trace, args)
    about = {} if bert is None else {"model": bert.name}
    record = _plain({**about, "kind": args.kind, **record})
    if args.html is not None:
        _write_figure(args.html, record)
    if args.json:
        print(json.dumps(record, ensure_ascii=False))
        return 0
    title = record["model"] if trace is None else f"{record['model']} · {' '.join(trace.tokens)}"
    print("\n".join([title, *table(rows, aligns)]))
    return 0


def _check(kind, args):
    from bert_tf.inference.predictions import check_top_k

    check_top_k(args.top_k)
    if kind.texts == "or file" and (args.text_a is None) == (args.input is None):
        raise InputError("Give either a text or --input FILE.")
    if kind.texts and getattr(args, "text_a", None) is not None:
        checked_pair(args.text_a, args.text_b)
    if kind.check:
        kind.check(args)
    elif kind.texts in ("file", "or file") and args.input is not None:
        read_file(args)


def _write_figure(path, record):
    from bert_tf.plots.explained import page_of

    with writing(path) as file:
        file.write(page_of(record))


def _plain(value):
    """What `json.dumps` takes; numbers that are none become null."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else round(float(value), 7)
    return value.item() if isinstance(value, np.generic) else value
