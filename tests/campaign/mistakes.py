"""Attacks on the command line: commands that could work, with up to two values or options that could not."""

import argparse
import contextlib
import io
import os
import re
import signal
import sys
import traceback
import unittest.mock

from tests.campaign.library import ROOT, small_model

#: Metavar -> values that fit. What is not named here gets a value of its type, or a word.
_FITTING = {
    "TEXT": ("the cat [MASK] on the mat",),
    "TEXT_A": ("the cat [MASK] on the mat",),
    "TEXT_B": ("it ran in the park",),
    "SENTENCE": ("the cat sat", "the dog ran in the park", "a [MASK] sat"),
    "WORD": ("cat", "park"),
    "TOKEN": ("cat", "1", "3"),
    "N": ("1", "2", "3"),
    "K": ("1", "2", "3"),
    "P": ("1", "2", "3"),
    "L": ("0",),
    "H": ("0", "1"),
    "L.H": ("0.0", "0.1"),
    "COLUMN": ("text", "label", "0", "1"),
    "CODE": ("en", "de"),
    "LABEL": ("large", "little"),
    "CLASS": ("large", "0"),
    "RUN": ("start",),
}
#: Command -> the files that fit it.
_FILES = {"finetune": ("rows.csv", "rows.tsv"), "evaluate": ("some.txt", "rows.csv"), "predict": ("texts.txt",)}
_HOSTILE = ("", " ", "-1", "0", "1e308", "nan", "[MASK]", "the cat", "/", "/no/such", "😀", "--", "-", "é" * 300)
_HOSTILE_FILES = ("bytes.bin", "empty.txt", "start", "missing", "rows.csv")
#: What a message says that was written for no reader.
_RAW = re.compile(r"has no attribute|NoneType|not subscriptable|unsupported operand|positional arg|Errno")
_SHORT = {"--steps": "2", "--epochs": "1", "--batch-size": "4", "--length": "16", "--threads": "1"}
_SECONDS = 40  # after which a command is interrupted, as by Ctrl-C


def options_of(words, parser):
    """The options and arguments of a command and of its sub-commands.

    Args:
        words: tuple of the words of the command.

    Yields: (words, list of `argparse.Action`).
    """
    subcommands = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not subcommands:
        yield words, [action for action in parser._actions if action.dest != "help"]
    for action in subcommands:
        for name, command in action.choices.items():
            yield from options_of((*words, name), command)


def all_options():
    """The words of each command and sub-command -> its options and arguments: dict tuple -> list of actions."""
    from importlib import import_module

    from bert_tf.cli import COMMANDS

    options = {}
    for name, (module, _) in COMMANDS.items():
        parser = argparse.ArgumentParser()
        import_module(module).add_arguments(parser)
        options.update(options_of((name,), parser))
    return options


def mistakes(rng, count, home, args):
    """Commands and sub-commands with values that fit, of which up to two are exchanged for others."""
    from bert_tf.cli import main

    os.chdir(home)
    small_model(home)
    (home / "bytes.bin").write_bytes(rng.randbytes(500))
    (home / "empty.txt").write_text("")
    (home / "some.txt").write_text("the cat sat on the mat\nit ran in the park\n\nthe dog ran\na cat sat\n" * 8)
    (home / "some.jsonl").write_text('{"text": "the [MASK]"}\n{"text": "a cat", "label": "large"}\n')
    rows = [("the cat sat", "large"), ("it ran in the park", "little"), ("", "large"), ("a dog", "little")] * 4
    for name, separator in (("rows.csv", ","), ("rows.tsv", "\t")):
        (home / name).write_text("\n".join(separator.join(row) for row in [("text", "label"), *rows]))
    (home / "texts.txt").write_text("the cat [MASK]\na [MASK] ran\tit sat\n")
    options, defects = all_options(), []
    for number in range(count):
        command = rng.choice(list(options))
        argv = _arguments(rng, command, options[command], f"out{number}")
        output = io.StringIO()
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.alarm(_SECONDS)
        try:
            with contextlib.redirect_stderr(output), contextlib.redirect_stdout(io.StringIO()), _stdin(), _no_server():
                code = main(argv)
            if code not in (None, 0, 1, 2, 3, 130, 143):
                defects.append(f"{argv}: exit code {code}")
            elif code == 2 and (raw := _RAW.search(output.getvalue())):
                defects.append(f"{argv}: a message with {raw.group()!r}: {output.getvalue().strip()[-200:]}")
        except BaseException:
            defects.append(f"{argv}: {traceback.format_exc().strip().splitlines()[-1][:200]}")
        finally:
            signal.alarm(0)
    os.chdir(ROOT)
    return count, defects


def _arguments(rng, command, actions, output):
    """The words of a command, as a list of str."""
    optional = [action for action in actions if not action.required and action.option_strings]
    chosen = [action for action in actions if action.required]
    chosen += rng.sample(optional, min(len(optional), rng.choice([0, 0, 1, 2, 3])))
    chosen += [action for action in optional if set(action.option_strings) & {*_SHORT, "--model", "--init", "--text"}]
    parts = [[*action.option_strings[-1:], *_values(rng, action, command, output)] for action in dict.fromkeys(chosen)]
    for _ in range(rng.choice([0, 0, 1, 2])):  # mistakes
        if parts and rng.random() < 0.8:
            part = rng.choice(parts)
            part[-1:] = [rng.choice([*_HOSTILE, *_HOSTILE_FILES])]
        elif parts:
            parts.remove(rng.choice(parts))
    return [*command, *(word for part in parts for word in part)]


def _values(rng, action, command, output):
    """Values that fit an option or argument, as a list of str."""
    if action.nargs == 0 or action.nargs == "?" and rng.random() < 0.5:
        return []
    return [
        _value(rng, action, command, output) for _ in range(rng.choice([1, 2]) if action.nargs in ("+", "*") else 1)
    ]


def _value(rng, action, command, output):
    option = (action.option_strings or [action.dest])[-1]
    if option in _SHORT:
        return _SHORT[option]
    if action.choices:
        return str(rng.choice(list(action.choices)))
    if option == "--output" or action.metavar == "DST":
        return output
    if action.metavar in ("M", "MODEL", "FOLDER", "SRC", "NAME") and not option.startswith("--log"):
        return "start"
    if action.metavar == "FILE":
        return rng.choice(_FILES.get(command[0], ("some.txt", "some.jsonl")))
    if action.metavar in _FITTING:
        return rng.choice(_FITTING[action.metavar])
    return rng.choice({int: ("1", "2", "3"), float: ("0.1", "0.5", "1")}.get(action.type, ("cat", "0.5", "2", "auto")))


@contextlib.contextmanager
def _no_server():
    """`serve` and `explore` end where their server would begin, which runs until it is stopped."""
    with unittest.mock.patch("uvicorn.Server.run"), unittest.mock.patch("os.execve", side_effect=SystemExit(0)):
        yield


@contextlib.contextmanager
def _stdin():
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(b""))
    try:
        yield
    finally:
        sys.stdin = before
