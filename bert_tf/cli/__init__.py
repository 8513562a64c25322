"""The command line, `bert-tf COMMAND` or `python -m bert_tf COMMAND`: one module for each, imported only for it.

Exit codes: 0 for success, 1 for a file that `check` found damaged, 2 for a mistake of the user (one line on standard
error), 3 for a file of inputs of which some could not be answered, 130 for an interruption by the keyboard, 143 for a
training that saved its state because a signal stopped it before its end.
"""

import argparse
import difflib
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn, TextIO, cast

import bert_tf
from bert_tf.errors import InputError, did_you_mean
from bert_tf.resources.remote import local_copies
from bert_tf.user_errors import is_user_error

#: Command -> (module with `add_arguments(parser)` and `run(args) -> exit code or None`, one line of help).
COMMANDS = {
    "explore": ("bert_tf.cli.web.explore", "open the explorer in the browser"),
    "serve": ("bert_tf.cli.web.serve", "answer predictions and analyses over HTTP"),
    "predict": (
        "bert_tf.cli.predict",
        "fill [MASK] in a text or pair, score whether the second text follows; or do so for a file",
    ),
    "explain": ("bert_tf.cli.explain", "explain a prediction: attention, layers, words, heads, counterfactuals"),
    "models": ("bert_tf.cli.models", "list the installed models and those that can be downloaded"),
    "info": ("bert_tf.cli.info", "show size, heads, source and settings of one model"),
    "download": ("bert_tf.cli.download", "download a released model"),
    "check": ("bert_tf.cli.check", "compare the files of a model or a run with their checksums"),
    "convert": ("bert_tf.cli.convert", "convert a model folder from one format to another"),
    "evaluate": ("bert_tf.cli.evaluate", "measure a model on a text file"),
    "finetune": ("bert_tf.cli.finetune", "fine-tune a model on examples of a task"),
    "vocab": ("bert_tf.cli.vocab", "train a WordPiece vocabulary on text files"),
    "prepare": ("bert_tf.cli.prepare", "make masked examples from text files, as sharded TFRecord files"),
    "features": ("bert_tf.cli.features", "write a vector for every text of a file, for other programs"),
    "pretrain": ("bert_tf.cli.pretrain", "pre-train a model on text files"),
    "export": ("bert_tf.cli.export", "write the model of a checkpoint of `pretrain` in any format"),
}

PROG = "python -m bert_tf"


class _ClosedInput(io.StringIO):
    """Takes the place of a standard input that the shell closed: who reads it gets a sentence."""

    @property
    def buffer(self) -> NoReturn:
        raise InputError("Standard input is closed, so - cannot be read: give the name of a file, or a pipe.")


class _StandardError:
    """Standard error of which the reader may go (`2>&1 | head`): the work does not need it and goes on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._try(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, function, *arguments):
        try:
            function(*arguments)
        except BrokenPipeError:
            _to_nowhere(self._stream)


class _Parser(argparse.ArgumentParser):
    """Prints an error in one line, without the usage that `argparse` prints above it, and names what is similar."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As `argparse`, but the parser of a command refuses an unknown option itself, and so names its own help."""
        first = args[0] if args else ""
        if self._subparsers is not None and first.startswith("--") and not self._knows(first):
            self._refuse([first])  # `argparse` would say that the command is missing
        namespace, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            self._refuse(unknown)
        return namespace, unknown

    def _knows(self, flag):
        """Whether an argument is an option of this parser, or the beginning of its name."""
        return any(option.startswith(flag.partition("=")[0]) for option in self._option_string_actions)

    def _refuse(self, unknown):
        flag = next((text.partition("=")[0] for text in unknown if text.startswith("--")), "")
        self.error(f"unrecognized arguments: {' '.join(unknown)}{_did_you_mean(flag, self._option_string_actions)}")

    def _check_value(self, action, value):
        """As `argparse`, but a value that is similar to a choice gets that choice, not the list of all."""
        hint = _did_you_mean(value, action.choices or ())
        if hint and value not in action.choices:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _did_you_mean(text, names):
    """The end of an error message: the names that are similar to a wrong one; "" if there is none."""
    near = difflib.get_close_matches(str(text), map(str, names), n=2, cutoff=0.8)
    return f".{did_you_mean(near)}" if near else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: sequence of str. The arguments after the program's name; None for those of this process.

    Returns: int, the exit code.

    Example:

    ```python
    main(["predict", "The capital of France is [MASK].", "--top-k", "3"])  # prints the predictions, returns 0
    ```
    """
    # TensorFlow reads this when it is imported; its notes on the CPU do not concern the user.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.formatwarning = _format_warning
    if argv is None:
        _write_every_character()
        if sys.stdin is None:
            sys.stdin = _ClosedInput()
        # Where the shell closed it, `print` would write the messages to standard output.
        sys.stderr = open(os.devnull, "w") if sys.stderr is None else cast(TextIO, _StandardError(sys.stderr))
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        args = argument_parser(argv).parse_args(argv)
        with local_copies(args):
            code = args.run(args) or 0
        if sys.stdout is not None:  # None where the shell closed it
            sys.stdout.flush()  # so that a failing write is reported below, not by the interpreter at its exit
        return code
    except SystemExit as exit_of_argparse:
        return int(exit_of_argparse.code or 0)
    except KeyboardInterrupt:
        print(f"{PROG}: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _to_nowhere(sys.stdout)  # its reader closed it (`| head`)
        return 0
    except (OSError, ValueError, ModuleNotFoundError) as error:
        if not _is_users_mistake(error):
            raise
        print(f"{PROG}: {_one_line(error)}", file=sys.stderr)
        return 2


def _to_nowhere(stream):
    """Lets a stream whose reader has gone write nowhere: the interpreter must not flush into it at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write_every_character():
    """Lets standard output and standard error take any text, also where the system's encoding is ASCII or a code page
    of Windows.

    A file or pipe gets UTF-8, as the files of `--output` do. A terminal, and an encoding that the user set in
    PYTHONIOENCODING, show a question mark for a character that they lack, and standard error its number.
    """
    for stream, errors in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            is_ours = not stream.isatty() and not os.environ.get("PYTHONIOENCODING")
            stream.reconfigure(encoding="utf-8" if is_ours else None, errors=errors)


_standard_format = warnings.formatwarning


def _format_warning(message, category, *place, **line):
    """A warning of this program as one line; others as Python writes them."""
    if category.__module__.startswith("bert_tf."):
        return f"{PROG}: {message}\n"
    return _standard_format(message, category, *place, **line)


def argument_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command line. It has the arguments of those commands alone that occur in `argv`.

    Args:
        argv: sequence of str. The arguments, or the names of the commands.
    """
    parser = _Parser(prog=PROG, description="BERT in Keras: predictions, models, measurement, pre-training.")
    parser.add_argument("--version", action="version", version=f"bert_tf {bert_tf.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    for name, (module, help_line) in COMMANDS.items():
        command = commands.add_parser(name, help=help_line, description=help_line[0].upper() + help_line[1:] + ".")
        # Only the module of the requested command is imported, so `--help` and `models` stay quick.
        if name in argv:
            command_module = import_module(module)
            command_module.add_arguments(command)
            command.set_defaults(run=command_module.run)
    return parser


def _is_users_mistake(error):
    """Whether the cause of an error is an input or a package that is not installed, not a defect of the program."""
    if isinstance(error, ModuleNotFoundError):
        return not str(error.name).startswith("bert_tf")
    return is_user_error(error)


def _one_line(error):
    if isinstance(error, OSError) and error.filename in ("", b""):
        return "The name of a file is empty: give a name."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}." if error.filename is None else f"{error.filename}: {error.strerror}."
    return " ".join(str(error).split())
