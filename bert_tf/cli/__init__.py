"""The command line, `python -m bert_tf COMMAND`: one module a command, imported when that command is given.

Exit codes: 0 well, 2 the user's mistake (one line on standard error), 130 interrupted, 143 a training that a signal
stopped before its end, saved.
"""

import argparse
import os
import sys
from importlib import import_module

import bert_tf
from bert_tf.user_errors import is_user_error

#: Command -> (module with `add_arguments(parser)` and `run(args) -> exit code or None`, one line of help).
COMMANDS = {
    "predict": (
        "bert_tf.cli.predict",
        "fill [MASK] in a text or pair, score whether the second follows; or a file of them",
    ),
    "explain": ("bert_tf.cli.explain", "why a model answers so: attention, layers, words, heads, what if"),
    "models": ("bert_tf.cli.models", "list the models that are here and those that can be downloaded"),
    "info": ("bert_tf.cli.info", "what is known of one model"),
    "download": ("bert_tf.cli.download", "download a released model"),
    "convert": ("bert_tf.cli.convert", "convert a model folder from one format to another"),
    "evaluate": ("bert_tf.cli.evaluate", "measure a model on a text file"),
    "finetune": ("bert_tf.cli.finetune", "fine-tune a model on examples of a task"),
    "vocab": ("bert_tf.cli.vocab", "train a WordPiece vocabulary on text files"),
    "prepare": ("bert_tf.cli.prepare", "make masked examples of text files, sharded TFRecord"),
    "features": ("bert_tf.cli.features", "a vector for every text of a file, for other programs"),
    "pretrain": ("bert_tf.cli.pretrain", "pre-train a model on text files"),
    "export": ("bert_tf.cli.export", "write the model of a pre-training's checkpoint in any format"),
}

PROG = "python -m bert_tf"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; argparse would print the whole usage above it."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv=None):
    """Run one command.

    Args:
        argv: the arguments after the program's name; those of the process if None.
    Returns:
        The exit code.
    """
    # Before TensorFlow is imported: its notes on the CPU it found are no news to the reader of a prediction.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        args = _parser(argv).parse_args(argv)
        code = args.run(args) or 0
        sys.stdout.flush()  # what cannot be written is told here, and not by the interpreter as it ends
        return code
    except SystemExit as finished:
        return finished.code or 0
    except KeyboardInterrupt:
        print(f"{PROG}: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has seen enough (`| head`). Nothing more can be flushed into it at exit
        # either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, ValueError, ModuleNotFoundError) as error:
        if not _is_for_the_user(error):
            raise
        print(f"{PROG}: {_one_line(error)}", file=sys.stderr)
        return 2


def _parser(argv):
    parser = _Parser(prog=PROG, description="BERT in Keras: predictions, models, measurement, pre-training.")
    parser.add_argument("--version", action="version", version=f"bert_tf {bert_tf.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for name, (module, help_line) in COMMANDS.items():
        command = commands.add_parser(name, help=help_line, description=help_line[0].upper() + help_line[1:] + ".")
        # Only the command at hand is imported: `--help` and `models` stay quick whatever the others need.
        if name in argv:
            home = import_module(module)
            home.add_arguments(command)
            command.set_defaults(run=home.run)
    return parser


def _is_for_the_user(error):
    """Whether an error is about what the user gave or has not installed, and no defect of the program."""
    if isinstance(error, ModuleNotFoundError):
        return not str(error.name).startswith("bert_tf")
    return is_user_error(error)


def _one_line(error):
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}." if error.filename is None else f"{error.filename}: {error.strerror}."
    return " ".join(str(error).split())
