"""`python -m bert_tf predict`: predicts for one text or pair from the command line, or for a file of them."""

import argparse
import json
import sys

from bert_tf.cli.shared.answers import refuse_file_options
from bert_tf.cli.shared.files import writing
from bert_tf.cli.shared.model import add_model_arguments, load_model
from bert_tf.cli.shared.reading_options import add_reading_arguments
from bert_tf.cli.shared.runner_options import add_runner_arguments, run_on_runner
from bert_tf.errors import InputError
from bert_tf.finetuning.data.tables import column_names
from bert_tf.finetuning.tasks.registry import READING, READING_OF_TEXTS
from bert_tf.user_errors import whole_number

_TOP_K = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `predict` to an `argparse` parser."""
    parser.add_argument("text_a", nargs="?", metavar="TEXT_A", help='the text; each "[MASK]" in it is predicted')
    parser.add_argument(
        "text_b",
        nargs="?",
        metavar="TEXT_B",
        help='a second text, to score whether it follows the first; for a model that chooses, the choices with "|" '
        "between them; for a model that answers questions, the passage",
    )
    add_model_arguments(parser)
    parser.add_argument(
        "--mask",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD",
        help="words to mask, all pieces of each; a word that is listed twice is masked at its first two occurrences",
    )
    parser.add_argument(
        "--target",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD",
        help="also print the rank and probability of these words at every mask; of a word of several pieces the "
        "pseudo-log-likelihood (Salazar et al. 2020), not with --input",
    )
    parser.add_argument(
        "--top-k", type=int, metavar="K", help=f"number of predictions for each mask (default {_TOP_K})"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--trace",
        metavar="FILE.npz",
        help="also write the logits, attention maps and hidden states of the forward pass",
    )
    file_options = parser.add_argument_group("a file of inputs")
    file_options.add_argument(
        "--input",
        metavar="FILE",
        help='JSON lines with "text_a" and optionally "text_b" and "mask" (a word, a token position, or a list of '
        "them), CSV or TSV with a column of texts and optionally one of words to mask, or .txt with a text on each "
        "line; a fine-tuned model reads what it was trained on; - for standard input",
    )
    file_options.add_argument(
        "--output",
        metavar="FILE",
        help="JSON lines, one for each line of the input that is not blank, in the same order, "
        '{"line", "error"} for a bad line; '
        "the file gets this name when it is complete, before it is FILE.partial; - for standard output (default)",
    )
    file_options.add_argument(
        "--resume",
        action="store_true",
        help="go on with the partial file of an interrupted run, if there is one",
    )
    file_options.add_argument(
        "--batch-size",
        type=whole_number(1),
        default=32,
        metavar="N",
        help="inputs in one pass (default 32); with 1 each prediction is written before the next line is read",
    )
    file_options.add_argument("--quiet", action="store_true", help="no progress bar")
    add_runner_arguments(file_options)
    add_reading_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Predicts with the head of a fine-tuned model, else masked words and the next sentence. Returns: exit code."""
    if _is_task_model(args):
        from bert_tf.cli.predict_task import run_task

        return run_task(args)
    args.top_k = _TOP_K if args.top_k is None else args.top_k
    for option, tasks in READING.items():
        if getattr(args, option) and option not in READING_OF_TEXTS:
            raise InputError(
                f"--{option.replace('_', '-')} goes with a model that is fine-tuned to {' or '.join(tasks)}."
            )
        if getattr(args, option) and args.input is None:
            raise InputError(f"--{option.replace('_', '-')} goes with --input FILE: it says how the file is read.")
    if args.input is not None:
        if args.text_a is not None or args.mask or args.trace:
            raise InputError("--input reads texts and masks from its file: leave TEXT_A, --mask and --trace out.")
        from bert_tf.cli.batch import predict_file

        if args.runner:
            return run_on_runner(_job(args), args)
        return predict_file(args, _job(args))
    refuse_file_options(args)
    if args.runner:
        raise InputError("--runner goes with --input FILE.")
    if args.text_a is None:
        # These options take all words that follow them, also the text.
        greedy_option = next((name for name in ("mask", "target") if getattr(args, name)), None)
        hint = f" Put it before --{greedy_option}, which takes every word after it." if greedy_option else ""
        raise InputError(f"Give a text to predict for, or --input FILE.{hint}")
    _check_before_loading(args)
    answer, seconds, note = _predict(args)
    if args.json:
        print(json.dumps(answer.to_dict(), ensure_ascii=False))
        if note:
            print(note, file=sys.stderr)
    else:
        from bert_tf.cli.shared.render import answer_lines

        print("\n".join(answer_lines(answer, seconds, note)))
    return 0


def _is_task_model(args):
    from bert_tf.checkpoints import find
    from bert_tf.finetuning.task_settings import read_settings

    return args.model is not None and read_settings(find(args.model)) is not None


def _job(args):
    from bert_tf.batch_jobs.jobs import PredictJob
    from bert_tf.checkpoints import find
    from bert_tf.inference.bert import DEFAULT_MODEL
    from bert_tf.inference.predictions import check_top_k

    check_top_k(args.top_k)
    return PredictJob(
        str(find(args.model or DEFAULT_MODEL)),
        args.precision,
        args.batch_size,
        args.top_k,
        tuple(args.target),
        args.format,
        column_names(args.columns),
        args.text_column,
        args.text2_column,
    )


def _check_before_loading(args):
    """Checks the input before the model is loaded, which takes seconds."""
    from bert_tf.errors import checked_pair
    from bert_tf.inference.predictions import check_top_k

    checked_pair(args.text_a, args.text_b)
    check_top_k(args.top_k)


def _predict(args):
    """(`Answer`, seconds of the forward pass, note on the pair or None)."""
    from bert_tf.inference.answer import answer_with_targets, pair_note

    bert = load_model(args)
    save_trace = args.trace is not None
    trace = bert.trace(args.text_a, args.text_b, args.mask, attentions=save_trace, hidden_states=save_trace)
    if save_trace:
        with writing(args.trace, "wb") as file:
            trace.save_npz(file)
    note = pair_note(trace.text_b is not None, trace.heads, trace.model)
    return answer_with_targets(bert, trace, args.top_k, args.target), trace.seconds, note
