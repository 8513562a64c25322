"""An `Analysis` of the catalogue as a sub-command of `explain`: options, inputs, run, output."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from bert_tf.analyses import check_model
from bert_tf.analysis import Analysis, Option
from bert_tf.cli.explain.shared import Progress, add_file_arguments, read_file
from bert_tf.cli.explain.target import add_target, check_target, target_of
from bert_tf.cli.shared.files import is_stream, refuse_same_file, refuse_unwritable, writing
from bert_tf.cli.shared.model import add_model_arguments, add_precision_argument, load_model
from bert_tf.cli.shared.render import cut_note
from bert_tf.errors import InputError, checked_pair, checked_text
from bert_tf.results import plain
from bert_tf.startup import quiet_tensorflow

#: The inputs of analyses that take a text or pair, and of those that take rows of a file.
PAIRS = ("pair", "pair or file", "pair with file")
FILES = ("file", "pair or file", "pair with file")
#: Old names of figures, which still work.
_FIGURES = {"likeness": "similarity"}


def add_arguments(parser: argparse.ArgumentParser, analysis: Analysis) -> None:
    """Adds the inputs and options of an analysis to an `argparse` parser."""
    for option in analysis.options:
        if option.positional and option.required:
            _add_option(parser, option)
    if analysis.inputs in (*PAIRS, "texts"):
        optional: dict[str, Any] = {"nargs": "?"} if analysis.inputs == "pair or file" else {}
        parser.add_argument("text_a", metavar="TEXT_A", help='the text; "[MASK]" in it is a mask', **optional)
        parser.add_argument("text_b", nargs="?", metavar="TEXT_B", help="a second text")
    if analysis.inputs == "text":
        parser.add_argument("text_a", metavar="TEXT", help='the text; "[MASK]" in it is a mask')
    if analysis.inputs in FILES:
        add_file_arguments(parser, required=analysis.inputs == "file")
    if analysis.target:
        add_target(parser)
    for option in analysis.options:
        if not (option.positional and option.required):
            _add_option(parser, option)
    if analysis.model:
        add_model_arguments(parser)
    elif any(option.model for option in analysis.options):
        add_precision_argument(parser)
    if analysis.masks and analysis.inputs not in ("file", "none", "text"):
        parser.add_argument("--mask", nargs="+", action="extend", default=[], metavar="WORD", help="words to mask")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--csv", metavar="FILE", help="also write the table as CSV; - prints it instead of the table for people"
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="also write the figure as one HTML file that needs no network; - prints that file instead",
    )
    # --show is the old name of --figure; some analyses have an option of that name.
    old_names = () if any(option.name == "show" for option in analysis.options) else ("--show",)
    parser.add_argument(
        "--figure", *old_names, metavar="NAME", help="the figure that --html writes (default: the first)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_option(parser, option):
    if option.type is bool:
        action = "store_false" if option.default else "store_true"
        parser.add_argument(*option.flags, action=action, dest=option.name, help=option.help)
        return
    shown = " ".join(map(str, option.default)) if isinstance(option.default, tuple) else option.default
    default = "" if option.default in (None, ()) else f" (default {shown})"
    nargs = "*" if option.positional and not option.required else "+"
    settings: dict[str, Any] = {} if option.positional else {"dest": option.name, "required": option.required}
    settings |= {"nargs": nargs, "action": "extend"} if option.several else {"default": option.default}
    parser.add_argument(
        *((option.name,) if option.positional else option.flags),
        **settings,
        type=_parser_of(option),
        choices=option.choices,
        metavar=option.metavar or ("NAME" if option.choices else option.name.upper()),
        help=(f"{option.help}: {', '.join(map(str, option.choices))}" if option.choices else option.help) + default,
    )


def _parser_of(option: Option) -> Callable[[str], Any]:
    """The function that `argparse` calls with the text of an option; its error is one sentence."""
    if option.value_aliases:
        return lambda text: option.value_aliases.get(text, text)
    convert = option.parse
    if convert is None:
        return option.type

    def parse(text):
        try:
            return convert(text)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def run(analysis: Analysis, args: argparse.Namespace) -> int:
    """Runs an analysis with the parsed options. Returns: exit code."""
    options = {option.name: _value(option, args) for option in analysis.options}
    if analysis.inputs == "pair or file" and (args.text_a is None) == (args.input is None):
        raise InputError("Give either a text or --input FILE.")
    if analysis.inputs in FILES:
        _check_reading(analysis, args)
    check(analysis, args, options)  # before the model is loaded, which takes seconds
    is_printed = _prints_a_file(args)
    _check_files(args)
    args.texts = None
    if analysis.inputs in FILES and args.input is not None:
        refuse_same_file(args.input, args.csv, "--csv")
        refuse_same_file(args.input, args.html, "--html")
        read_file(args)
        if analysis.check_rows is not None:
            analysis.check_rows(options, args.texts)
    bert = load_model(args) if analysis.model else None
    if bert is not None:
        check_model(analysis, bert)
    for option in analysis.options:
        names = option.models(options[option.name], bert)
        if names is not None:
            options[option.name] = _load(names, args)
    positional, trace = inputs(analysis, bert, args)
    if trace is not None and any(trace.truncated):
        print(cut_note(*trace.truncated), file=sys.stderr)
    if analysis.reports_progress:
        with Progress(args) as progress:
            result = analysis.function(*positional, **options, progress=progress)
    else:
        result = analysis.function(*positional, **options)
    _check_figure(args, result)
    models = " and ".join(model.name for model in (bert, options.get("other")) if model is not None)
    _write_files(args, result, " · ".join([analysis.name, *([models] if models else [])]))
    if is_printed:
        return 0
    if args.json:
        print(json.dumps(record_of(analysis, bert, trace, result), ensure_ascii=False, allow_nan=False))
        return 0
    heading = [models or getattr(result, "model", analysis.name)]
    print("\n".join([" · ".join([*heading, *([" ".join(trace.tokens)] if trace else [])]), result.to_text()]))
    return 0


def _check_reading(analysis, args):
    """Raises InputError if an option has no effect: one for a file without a file, or a mask without a text."""
    reading = {"--first": args.first, "--second": args.second, "--rows": args.most_rows}
    given = [option for option, value in reading.items() if value is not None]
    if args.input is None and given:
        raise InputError(f"{given[0]} says how --input FILE is read: name a file, or leave {given[0]} out.")
    if analysis.inputs == "pair or file" and args.input is not None and analysis.masks and args.mask:
        raise InputError("--mask hides words of a text on the command line, not of --input: leave it out.")


def record_of(analysis: Analysis, bert: Any, trace: Any, result: Any) -> dict[str, Any]:
    """The JSON record of an analysis.

    Args:
        analysis: `Analysis`. bert: `Bert` or None. trace: `Trace` or None, what was analysed. result: its `Result`.

    Returns:
        dict of JSON values. "truncated" says how many tokens of each text were not read; it is left out if all were.
    """
    model = {"model": bert.name} if bert else {}
    tokens = {"tokens": trace.tokens} if trace is not None else {}
    truncated = {"truncated": trace.truncated._asdict()} if trace is not None and any(trace.truncated) else {}
    return {**model, "analysis": analysis.name, **plain(tokens), **truncated, **result.to_dict()}


def _value(option, args):
    value = getattr(args, option.name)
    if not option.several:
        return value
    return tuple(value) if value else option.default


def _load(names, args):
    """The `Bert` of a name or a folder, or a tuple of `Bert` for several names."""
    quiet_tensorflow()
    from bert_tf.inference.bert import load

    if isinstance(names, str):
        return load(names, precision=args.precision)
    return tuple(load(name, precision=args.precision) for name in names)


def check(analysis: Analysis, args: argparse.Namespace, options: dict[str, Any]) -> None:
    """Checks texts, target and options before the model is loaded.

    Raises: InputError, one sentence.
    """
    if analysis.inputs == "text":
        checked_text(args.text_a, "TEXT")
    elif getattr(args, "text_a", None) is not None:
        checked_pair(args.text_a, args.text_b)
    if analysis.target:
        check_target(args)
    analysis.check_options(options)


def inputs(analysis: Analysis, bert: Any, args: argparse.Namespace) -> tuple[list[Any], Any]:
    """Returns: (the positional arguments of the function, the `Trace` among them or None)."""
    trace: Any = None
    positional: list[Any] = [bert] if analysis.model else []
    if analysis.inputs in PAIRS:
        if args.text_a is not None:
            trace = bert.trace(
                args.text_a, args.text_b, args.mask if analysis.masks else (), attentions=analysis.attentions
            )
        positional.append(trace)
    if analysis.inputs == "text":
        positional.append(args.text_a)
    if analysis.inputs == "texts":
        positional += [args.text_a, args.text_b, tuple(args.mask)]
    if analysis.inputs in FILES:
        positional.append(args.texts)
    if analysis.target:
        positional.append(target_of(bert, trace, args))
    return positional, trace


def _prints_a_file(args):
    """Whether standard output gets the CSV or HTML file; raises InputError if it is to get several things."""
    asked = {"--json": args.json, "--csv -": args.csv == "-", "--html -": args.html == "-"}
    printed = [option for option, is_asked in asked.items() if is_asked]
    if len(printed) > 1:
        raise InputError(f"Standard output takes one thing: give only one of {' and '.join(printed)}.")
    return "-" in (args.csv, args.html)


def _check_files(args):
    """Raises InputError or OSError if --csv or --html cannot be written, or if both name the same file."""
    paths = [path for path in (args.csv, args.html) if path not in (None, "-")]
    for path in paths:
        refuse_unwritable(path)
    if len(paths) == 2 and os.path.realpath(args.csv) == os.path.realpath(args.html) and not is_stream(args.csv):
        raise InputError(f"--csv and --html are the same file, {args.csv}: give another name to one of them.")


def _check_figure(args, result):
    if args.figure is not None and _FIGURES.get(args.figure, args.figure) not in result.figures:
        names = ", ".join(result.figures) or "none"
        raise InputError(f"This analysis has no figure {args.figure!r:.40}; it has: {names}.")


def _write_files(args, result, title):
    if args.csv is not None:
        _write(args.csv, result.to_frame().to_csv(index=False))
    if args.html is not None:
        from bert_tf.plots.page import figure_page

        _write(args.html, figure_page(result.figure(_FIGURES.get(args.figure, args.figure)), title))


def _write(path, text):
    """Writes a file, or standard output for "-"."""
    if path == "-":
        print(text, end="")
        return
    with writing(path) as file:
        file.write(text)
