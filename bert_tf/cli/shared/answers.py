"""The output of `predict --input`: a file that is kept when the command is interrupted, and gone on with later."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from bert_tf.checksums import checksum
from bert_tf.cli.shared.files import input_name, is_stream, refuse_unwritable, unchanged_note
from bert_tf.errors import InputError
from bert_tf.files import DISK_FULL, read_json, write_json
from bert_tf.folder_lock import only_writer
from bert_tf.resources.remote import NOTE, PARTIAL, is_copy, is_remote, original_path, send_mirrors

#: Exit code where some inputs could not be answered.
BAD_INPUTS = 3

_SAVE_EVERY = 1.0  # seconds between two notes of how far the file is
_SEND_EVERY = 60.0  # seconds between two copies of the partial file in a bucket, each of the whole file
# Options that change neither the answers nor their order, so that they may differ when a run goes on.
_FREE_OPTIONS = ("run", "quiet", "resume", "batch_size", "output", "json")


class Answers:
    """Where the answers go, and how many there are.

    Args:
        send: callable that takes the next text of the output and returns its number of bytes.

    Attributes:
        good, bad: int. The inputs that were answered, and those that could not be, with those of the run that is gone
            on with. columns: what a writer of tables must know to go on, JSON values.
    """

    def __init__(self, send: Callable[[str], int]) -> None:
        self._send = send
        # Set in one step, so that Ctrl-C finds bytes and inputs that belong together.
        self._place = (0, 0, 0)  # bytes, good, bad
        self.columns: dict[str, Any] = {}

    @property
    def good(self) -> int:
        return self._place[1]

    @property
    def bad(self) -> int:
        return self._place[2]

    @property
    def done(self) -> int:
        """The inputs at the start of the file to read that have their place in the output already."""
        return self.good + self.bad

    def write(self, text: str, good: int = 0, bad: int = 0) -> None:
        """Writes the text of so many inputs."""
        size, so_far, so_bad = self._place
        self._place = (size + self._send(text), so_far + good, so_bad + bad)


@contextmanager
def answers_to(args: argparse.Namespace) -> Iterator[Answers]:
    """Opens the output of `predict --input`.

    A file gets its name when it is complete. Until then it is called `OUTPUT.partial`, beside `OUTPUT.partial.json`,
    which says how far it is. Both stay if the block ends with an exception after the first good answer. For a file in
    a bucket both are there too, as they were at most a minute ago.

    Args:
        args: argparse.Namespace. The options of `predict`.

    Raises:
        InputError: the output names no file; there is a partial file and no `--resume`; or it is of a run with other
            options or of an input that has changed.
        FolderInUse: another process writes it.
        OSError: the output cannot be written; the error names it.
    """
    path = None if args.output == "-" else args.output
    if path is not None:
        refuse_unwritable(path)
    if path is None or is_stream(path):
        if args.resume:
            raise InputError("--resume goes with --output FILE.")
        with nullcontext(sys.stdout) if path is None else open(path, "w", encoding="utf-8", newline="\n") as stream:
            yield Answers(partial(_send_to, stream, args.batch_size == 1))
        return
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(f"{target.name}{PARTIAL}")
    in_use = f"Another `predict` is writing {unfinished}; wait until it ends, or give another --output."
    with _names(path), only_writer(unfinished.with_name(f"{unfinished.name}.lock"), in_use):
        output = _PartialFile(path, unfinished, _settings(args), args.resume)
        try:
            yield output
            output.close()
            os.replace(unfinished, target)
            output.state.unlink(missing_ok=True)
        except BaseException:
            output.keep()
            raise


def _send_to(stream, live, text):
    stream.write(text)
    if live:
        stream.flush()
    return len(text)


@contextmanager
def _names(path):
    """Errors of the partial file name the output instead."""
    try:
        yield
    except OSError as error:
        is_partial = str(error.filename).startswith(f"{os.path.realpath(path)}{PARTIAL}")
        if is_partial or error.filename is None and error.errno in DISK_FULL:
            error.filename, error.filename2 = path, None
        raise


class _PartialFile(Answers):
    """Answers in a file that is not complete yet."""

    def __init__(self, path, partial, settings, resume):
        super().__init__(lambda text: self._file.write(text.encode("utf-8")))
        self.partial, self.state = partial, partial.with_name(f"{partial.name}.json")
        url = original_path(path)
        self._path, self._is_sent = path, is_remote(url)
        # As the user knows the two files.
        self._target = f"{url}{PARTIAL}" if self._is_sent else str(partial)
        self._note = f"{url}{NOTE}" if self._is_sent else str(self.state)
        self._settings, self._saved, self._sent = settings, time.monotonic(), time.monotonic()
        if self.state.exists() and not resume:
            raise InputError(
                f"{self._target} holds the answers of an interrupted run: go on with --resume, or delete it to start "
                "again."
            )
        if self.state.exists():
            self._restore(read_json(self.state))
        size = self._place[0]
        self._file = partial.open("r+b" if size else "wb")
        self._file.truncate(size)
        self._file.seek(size)

    def _restore(self, state):
        if not {"bytes", "good", "bad", "columns", "settings"} <= state.keys():
            raise InputError(f"{self._note} cannot be read: delete it and {self._target} to start again.")
        if other := [name for name in self._settings if state["settings"].get(name) != self._settings[name]]:
            changed = {
                "input_state": f"{self._settings['input']} has changed since",
                "model_state": "the weights of the model have changed since",
            }
            what = changed.get(other[0], f"it is of a run with another {_option(other[0])}")
            raise InputError(f"{self._target} cannot be gone on with: {what}. Delete it to start again.")
        if not self.partial.is_file() or self.partial.stat().st_size < state["bytes"]:
            raise InputError(f"{self._target} is shorter than {self._note} says: delete both to start again.")
        self._place, self.columns = (state["bytes"], state["good"], state["bad"]), state["columns"]

    def write(self, text, good=0, bad=0):
        super().write(text, good, bad)
        if time.monotonic() - self._saved > _SAVE_EVERY:
            self._save()
            if self._is_sent and time.monotonic() - self._sent > _SEND_EVERY:
                send_mirrors(self._path)
                self._sent = time.monotonic()

    def _save(self):
        self._file.flush()
        counts = dict(zip(("bytes", "good", "bad"), self._place, strict=True))
        write_json(self.state, {**counts, "columns": self.columns, "settings": self._settings})
        self._saved = time.monotonic()

    def close(self):
        """Writes what is buffered, and closes the file."""
        self._file.close()

    def keep(self):
        """Keeps the file after an exception and says so, or deletes it if it has no good answer."""
        if not self.good:
            self._delete()
            return
        with suppress(OSError, ValueError):  # a full disk: what the last note says is there
            self._save()
        with suppress(OSError):
            self._file.close()
        if not self.state.exists():
            self._delete()
            return
        kept = read_json(self.state)
        count = f"{kept['good'] + kept['bad']:,}"
        print(f"{count} answers are kept in {self._target}; the same command with --resume goes on.", file=sys.stderr)

    def _delete(self):
        with suppress(OSError):
            self._file.close()
        for path in (self.partial, self.state):
            path.unlink(missing_ok=True)


def _settings(args):
    """What must be the same when a run goes on: the options, and the size and time of the input and of the weights.

    Of an input in a bucket, whose copy is new each time, it is the size and the checksum; of weights there, the size.
    """
    from bert_tf.checkpoints.library import find, weights_state
    from bert_tf.inference.bert import DEFAULT_MODEL

    settings = {name: value for name, value in vars(args).items() if name not in _FREE_OPTIONS}
    with suppress(OSError):
        status = os.stat(args.input)
        settings["input_state"] = [status.st_size, status.st_mtime_ns]
        if is_copy(args.input):
            settings["input_state"] = checksum(args.input)
    with suppress(OSError):
        weights = weights_state(find(args.model or DEFAULT_MODEL))
        settings["model_state"] = [state[:2] if is_copy(args.model) else state for state in weights]
    settings.update({name: original_path(settings[name]) for name in ("input", "model") if settings[name] is not None})
    return json.loads(json.dumps(settings, default=str))


def _option(name):
    return f"--{name.replace('_', '-')}"


def refuse_file_options(args: argparse.Namespace) -> None:
    """Checks that a command without `--input` has no option of files; raises InputError if it has."""
    for name in ("output", "resume"):
        if getattr(args, name) not in (None, False):
            raise InputError(f"--{name} goes with --input; a single prediction is printed.")


def none_answered(count: int, name: str, args: argparse.Namespace) -> InputError:
    """The error of an input of which nothing could be answered.

    Args:
        count: int. The inputs that were read. name: str, "line" or "row".
        args: argparse.Namespace. The options of `predict`.
    """
    what = f"The only {name}" if count == 1 else f"None of the {count:,} {name}s"
    unanswered = "could not be answered" if count == 1 else "could be answered"
    return InputError(f"{what} of {input_name(args.input)} {unanswered}{unchanged_note(args.output)}.")


def report_counts(answers: Answers, name: str, quiet: bool, blank: int = 0) -> int:
    """Prints how many inputs were answered. Returns: the exit code, `BAD_INPUTS` if some could not be.

    Args:
        answers: `Answers`. name: str, "line" or "row". quiet: bool. Only bad inputs are reported.
        blank: int. The blank lines that were left out.
    """
    if answers.bad or not quiet:
        bad = f", {answers.bad:,} bad {name}{'' if answers.bad == 1 else 's'}" if answers.bad else ""
        print(f"{answers.good:,} answered{bad}{blank_note(blank)}.", file=sys.stderr)
    return BAD_INPUTS if answers.bad else 0


def blank_note(blank: int) -> str:
    """What a summary says of so many blank lines that were left out; "" if there was none."""
    return f", {blank:,} blank {'line' if blank == 1 else 'lines'} left out" if blank else ""
