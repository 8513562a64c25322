"""`predict`: one text or pair from the command line, or a file of them."""

import json
import sys

from bert_tf.cli.shared.files import writing
from bert_tf.cli.shared.model import add_model_arguments, load_model
from bert_tf.cli.shared.reading_options import READING, add_reading_arguments
from bert_tf.errors import InputError


def add_arguments(parser):
    parser.add_argument("text_a", nargs="?", metavar="TEXT_A", help='the text; "[MASK]" in it is filled')
    parser.add_argument(
        "text_b",
        nargs="?",
        metavar="TEXT_B",
        help='a second text, to score whether it follows; choices, parted by "|", '
        "where a model chooses; the passage where it answers",
    )
    add_model_arguments(parser)
    parser.add_argument(
        "--mask",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD",
        help="words to mask, every piece of each; a word given twice is masked in its first two places",
    )
    parser.add_argument(
        "--target",
        nargs="+",
        action="extend",
        default=[],
        metavar="WORD",
        help="words to ask about at every mask, besides the likeliest: the rank and probability of each",
    )
    parser.add_argument("--top-k", type=int, default=5, metavar="K", help="predictions a mask (default 5)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--trace",
        metavar="FILE.npz",
        help="also write all that the forward pass told: logits, every attention map and hidden state",
    )
    many = parser.add_argument_group("a file of inputs")
    many.add_argument(
        "--input",
        metavar="FILE",
        help='for a fine-tuned model JSON lines, CSV or TSV; else JSON lines with "text_a" and, as wanted, "text_b" '
        'and "mask" (a word, a token position, or a list of them); - for standard input',
    )
    many.add_argument(
        "--output",
        metavar="FILE",
        help='JSON lines, one for each line of the input and in its order, {"line", "error"} for a bad '
        "one; appears under this name when all of it is written; - for standard output (default)",
    )
    many.add_argument(
        "--batch-size",
        type=int,
        default=32,
        metavar="N",
        help="inputs in one pass (default 32); with 1 each is answered as it comes, before the next one is read",
    )
    many.add_argument("--quiet", action="store_true", help="no progress bar")
    add_reading_arguments(parser)


def run(args):
    """Predicts: what the model was fine-tuned for, else masked words and the next sentence."""
    if _is_task_model(args):
        from bert_tf.cli.predict_task import run_task

        return run_task(args)
    for option, tasks in READING.items():
        if getattr(args, option):
            raise InputError(
                f"--{option.replace('_', '-')} goes with a model that is fine-tuned to {' or '.join(tasks)}."
            )
    if args.input is not None:
        if args.text_a is not None or args.mask or args.trace:
            raise InputError("--input reads texts and masks from its file: leave TEXT_A, --mask and --trace out.")
        from bert_tf.cli.batch import predict_file

        return predict_file(args)
    if args.output is not None:
        raise InputError("--output goes with --input; a single prediction is printed.")
    if args.text_a is None:
        greedy = next((name for name in ("mask", "target") if getattr(args, name)), None)
        hint = f" Put it before --{greedy}, which takes every word after it." if greedy else ""
        raise InputError(f"Give a text to predict in, or --input FILE.{hint}")
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


def _check_before_loading(args):
    """What is wrong with the input itself is told at once, not after the seconds that loading takes."""
    from bert_tf.errors import checked_pair
    from bert_tf.inference.predictions import check_top_k

    checked_pair(args.text_a, args.text_b)
    check_top_k(args.top_k)


def _predict(args):
    from bert_tf.inference.answer import answer_from, pair_note

    bert = load_model(args)
    everything = args.trace is not None
    trace = bert.trace(args.text_a, args.text_b, args.mask, attentions=everything, hidden_states=everything)
    if everything:
        with writing(args.trace, "wb") as file:
            trace.save_npz(file)
    note = pair_note(trace.text_b, trace.heads, trace.model)
    return answer_from(trace, bert.tokenizer, args.top_k, args.target), trace.seconds, note
