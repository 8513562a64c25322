"""The options of `pretrain`."""

import argparse

from bert_tf.architectures import ARCHITECTURES
from bert_tf.cli.prepare import LENGTH, add_example_arguments
from bert_tf.cli.shared.added_words import add_tokens_argument
from bert_tf.cli.shared.training_options import add_device_arguments, add_optimizer_arguments
from bert_tf.pretraining.initialization import POSITIONS
from bert_tf.training.logs.trackers import TRACKERS
from bert_tf.user_errors import SEED, whole_number

# The options of examples that prepared records have settled.
_EXAMPLE_OPTIONS = ("objective", "language", "mask_rate", "whole_words", "ngram", "max_predictions")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `pretrain` to an `argparse` parser."""
    _add_files(parser)
    _add_model(parser)
    _add_updates(parser)
    add_device_arguments(parser)
    add_example_arguments(parser)
    # None means not given, so that every value that is given can be compared with that of the records.
    parser.set_defaults(**dict.fromkeys(_EXAMPLE_OPTIONS))
    _add_checkpoints(parser)


def _add_files(parser):
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument(
        "--text",
        nargs="+",
        metavar="FILE",
        help="files or globs, with new masks in each epoch: one paragraph on each line and a blank line between "
        "documents, or .jsonl with one document on each line; also as .gz, .xz, .zst",
    )
    data.add_argument(
        "--records", metavar="DIR", help="examples made by `prepare`, with their objective, length and masks"
    )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="folder of the run; if it exists, the run is resumed"
    )
    parser.add_argument("--max-documents", type=whole_number(1), metavar="N", help="use only the first N documents")
    parser.add_argument("--corpus", metavar="DIR", help="folder of the tokenized text (default: in --output)")


def _add_model(parser):
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument(
        "--init", metavar="MODEL", help="start from this model; heads it lacks start with random weights"
    )
    start.add_argument(
        "--size", help="start from random weights (needs --vocab): a named size, or LAYERSxWIDTHxHEADS like 3x128x4"
    )
    start.add_argument(
        "--student-layers", type=int, metavar="N", help="start from N layers of the --teacher, evenly spread"
    )
    add_tokens_argument(parser)
    parser.add_argument("--teacher", metavar="MODEL", help="distil this model; it must have the same tokenizer")
    parser.add_argument(
        "--distil",
        metavar="WAY",
        help="with --teacher: what to learn from it: states (default: its predictions and last hidden states, as in "
        "DistilBERT) or relations (the token relations of its last layer, as in MiniLM, for any width)",
    )
    parser.add_argument(
        "--generator",
        type=_share_or_model,
        metavar="SHARE|MODEL",
        help="as in ELECTRA: a generator of this share of the width (0.25) fills the masked positions, "
        "and the model learns which tokens were replaced; or a trained model of the same tokenizer "
        "fills them and is not trained; with --objective mlm",
    )
    parser.add_argument(
        "--model-type",
        choices=tuple(ARCHITECTURES),
        help="architecture of the model: with --size any (default: bert; albert with --objective sop, electra with "
        "--generator; causal models need --objective clm); with --student-layers distilbert; with --init electra, "
        "which starts with the encoder of a BERT",
    )
    parser.add_argument(
        "--vocab",
        metavar="MODEL",
        help="a model or folder whose vocabulary is used, with --size (default: that of --records)",
    )
    parser.add_argument("--positions", type=int, help=f"with --size: longest input in tokens (default {POSITIONS})")
    parser.add_argument(
        "--embedding-size",
        type=int,
        metavar="E",
        help="with --size: width of the token embeddings of an albert or electra (default: as released; in other "
        "sizes at most half of the hidden size)",
    )


def _add_updates(parser):
    parser.add_argument("--steps", type=whole_number(1), default=1000, help="number of updates (default 1000)")
    parser.add_argument(
        "--batch-size",
        type=int,
        default=32,
        help="sequences of an update, over all devices and micro-batches together (default 32)",
    )
    parser.add_argument(
        "--length", type=int, help=f"tokens of a sequence (default {LENGTH}, or as many as the model reads)"
    )
    parser.add_argument(
        "--phases",
        metavar="LENGTH:SHARE,…",
        help="instead of --length: short sequences first, like 128:0.9,512:0.1 of the steps",
    )
    add_optimizer_arguments(parser, learning_rate=1e-4, warmup=0.05)
    parser.add_argument("--dropout", type=float, help="dropout rate, instead of the model's (0 suits short runs)")
    parser.add_argument(
        "--rematerialise",
        action="store_true",
        help="compute the layers again in the backward pass instead of storing them: less memory, more time",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="random seed (default 0)")


def _add_checkpoints(parser):
    parser.add_argument(
        "--save-every", type=whole_number(1), default=500, help="steps between checkpoints (default 500)"
    )
    parser.add_argument(
        "--keep",
        type=whole_number(1),
        default=2,
        metavar="N",
        help="checkpoints to keep: the newest N and the best (default 2)",
    )
    parser.add_argument(
        "--snapshots",
        action="store_true",
        help="save the models of steps 0, 1, 2, 5, 10, 20, 50, … in float16 in OUTPUT/snapshots",
    )
    parser.add_argument(
        "--stop-after", type=whole_number(1), metavar="STEP", help="save and stop at this step; resume later"
    )
    parser.add_argument(
        "--log-every", type=whole_number(1), default=50, help="steps between lines of the log (default 50)"
    )
    parser.add_argument("--log-to", choices=TRACKERS, help="also send the log to this tracker")


def set_example_defaults(args: argparse.Namespace) -> None:
    """Sets the options of examples that are not given to their defaults, for a training on --text."""
    parser = argparse.ArgumentParser()
    add_example_arguments(parser)
    for name in _EXAMPLE_OPTIONS:
        if getattr(args, name) is None:
            setattr(args, name, parser.get_default(name))


def _share_or_model(text):
    """The value of --generator: a float, or the name of a model as str."""
    try:
        return float(text)
    except ValueError:
        return text
