"""`python -m bert_tf evaluate TASK`: evaluates pre-training heads on a text file, or a fine-tuned model on examples.

The pre-training heads predict masked words, sentence pairs and replaced tokens.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from bert_tf.cli.shared.model import add_model_arguments, load_model
from bert_tf.cli.shared.render import percent, table
from bert_tf.errors import require_head
from bert_tf.user_errors import SEED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds a sub-command for each task."""
    from bert_tf.cli import evaluate_task

    tasks = parser.add_subparsers(metavar="TASK", required=True, dest="task", parser_class=type(parser))
    read = "masked words, sentence pairs and replaced tokens, on any text"
    _add_mlm_arguments(tasks.add_parser("mlm", help=read, description=read[0].upper() + read[1:] + "."))
    evaluate_task.add_tasks(tasks)


def _add_mlm_arguments(parser):
    from bert_tf.cli.prepare import LENGTH, add_text_arguments

    add_model_arguments(parser)
    parser.add_argument(
        "--text",
        required=True,
        metavar="FILE",
        help="plain text with one paragraph on each line and a blank line between documents; or .jsonl",
    )
    add_text_arguments(parser)
    parser.add_argument(
        "--limit", type=int, metavar="N", help="use at most N sequences, spread over the file (default: all)"
    )
    parser.add_argument(
        "--length",
        type=int,
        nargs="+",
        metavar="T",
        help=f"tokens of a sequence (default {LENGTH}, or as many as the model reads); several lengths are measured "
        "one after the other",
    )
    parser.add_argument(
        "--by-position",
        action="store_true",
        help="also the accuracy at each place of the sequence, in groups of 32 places",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="with --by-position: also write the accuracies as a figure, in one HTML file that needs no network",
    )
    parser.add_argument(
        "--seed", type=SEED, default=0, metavar="S", help="random seed of the pairs and masks (default 0)"
    )
    parser.add_argument(
        "--alone",
        action="store_true",
        help="sequences of one segment with one masked token each, for a fair comparison with causal models",
    )
    parser.add_argument(
        "--generator",
        metavar="MODEL",
        help="this model samples the tokens that a discriminator has to detect (default: sampled from the text)",
    )
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="sequences in one pass (default 32)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Evaluates the model on the task. Returns: exit code."""
    if args.task != "mlm":
        from bert_tf.cli.evaluate_task import run_task

        return run_task(args)
    from tqdm import tqdm

    from bert_tf.checkpoints import find
    from bert_tf.cli.prepare import LENGTH
    from bert_tf.cli.shared.files import refuse_unwritable, writing
    from bert_tf.inference.bert import load
    from bert_tf.pretraining.data.documents import find_files
    from bert_tf.pretraining.evaluate import evaluate_mlm
    from bert_tf.resources.remote import original_path

    if args.html and not args.by_position:
        raise ValueError("--html draws the accuracy at each place: give --by-position too.")
    # A wrong path is an error before the model is loaded, which takes seconds.
    find_files([args.text])
    if args.html:
        refuse_unwritable(args.html)
    bert = load_model(args)
    if args.by_position:
        require_head(bert.heads, "mlm", bert.name)
    generator = load(find(args.generator), precision=args.precision) if args.generator else None
    # The delay hides the bar until the first sequences: there may be none.
    with tqdm(unit="sequence", disable=args.quiet, file=sys.stderr, mininterval=0.5, delay=1e-6) as bar:

        def progress(done, total):
            if done < bar.n:
                bar.reset(total)  # the next kind of sequences begins
            bar.total = total
            bar.update(done - bar.n)

        reports = [
            evaluate_mlm(
                bert,
                args.text,
                length=length,
                seed=args.seed,
                limit=args.limit,
                batch_size=args.batch_size,
                progress=progress,
                alone=args.alone,
                generator=generator,
                text_field=args.field,
                language=args.language,
                by_position=args.by_position,
            )
            for length in args.length or [min(LENGTH, *(one.max_length for one in (bert, generator) if one))]
        ]
    if args.html:
        from bert_tf.plots.page import figure_page
        from bert_tf.plots.training.accuracy_by_position import accuracy_by_position

        with writing(args.html) as file:
            file.write(figure_page(accuracy_by_position(reports), f"{bert.name}: masked words by position"))
    if args.json:
        figures = reports[0] if len(reports) == 1 else {"lengths": reports}
        print(json.dumps({"model": bert.name, "text": original_path(args.text), **figures}))
        return 0
    print("\n".join([bert.name, *_lines(reports)]))
    return 0


def _lines(reports):
    """The reports side by side as lines of text, then their accuracies at each place."""
    formats: dict[str, Callable[[Any], str]] = {"pseudo_perplexity": "{:.2f}".format, "replaced_auc": "{:.3f}".format}
    shares = ("top1", "top5", "nsp_accuracy", "sop_accuracy", "replaced_accuracy", "replaced_found", "replaced_share")
    formats.update(dict.fromkeys(shares, percent))

    def cell(name, value):
        return "none" if value is None else formats.get(name, "{:,}".format)(value)

    names = [name for name in reports[0] if name != "by_position"]
    lines = table(
        [(name, *(cell(name, report[name]) for report in reports)) for name in names], "<" + ">" * len(reports)
    )
    for report in reports:
        groups = report.get("by_position", ())
        if groups:
            lines += ["", f"top1 by position, sequences of {report['length']} tokens"]
        lines += table(
            [
                (f"{group['first']} to {group['last']}", percent(group["top1"]), f"{group['masked_tokens']:,} tokens")
                for group in groups
            ],
            "<>>",
        )
    return lines
