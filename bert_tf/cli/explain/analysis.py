"""One `Analysis` of the catalogue as a subcommand of `explain`: options, inputs, run, output."""

import argparse
import json

from bert_tf.cli.explain.shared import Progress, add_file_arguments, read_file
from bert_tf.cli.explain.target import add_target, check_target, target_of
from bert_tf.cli.shared.files import writing
from bert_tf.cli.shared.model import add_model_arguments, load_model
from bert_tf.errors import InputError, checked_pair
from bert_tf.results import plain


def add_arguments(parser, analysis):
    """Add what an analysis takes to an `argparse` parser."""
    if analysis.inputs in ("pair", "pair or file"):
        optional = {"nargs": "?"} if analysis.inputs == "pair or file" else {}
        parser.add_argument("text_a", metavar="TEXT_A", help='the text; "[MASK]" in it is a mask', **optional)
        parser.add_argument("text_b", nargs="?", metavar="TEXT_B", help="a second text")
    if analysis.inputs in ("file", "pair or file"):
        add_file_arguments(parser, required=analysis.inputs == "file")
    if analysis.target:
        add_target(parser)
    for option in analysis.options:
        _add_option(parser, option)
    if analysis.model:
        add_model_arguments(parser)
    if analysis.masks and analysis.inputs != "none":
        parser.add_argument("--mask", nargs="+", action="extend", default=[], metavar="WORD", help="words to mask")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--csv", metavar="FILE", help="also write the table as CSV")
    parser.add_argument("--html", metavar="FILE", help="also write the figure as one HTML file that needs no network")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_option(parser, option):
    if option.type is bool:
        parser.add_argument(*option.flags, dest=option.name, action="store_true", help=option.help)
        return
    shown = "" if option.default is None else f" (default {option.default})"
    parser.add_argument(
        *option.flags,
        dest=option.name,
        type=_parser_of(option),
        default=option.default,
        choices=option.choices,
        nargs="+" if option.several else None,
        required=option.required,
        metavar=option.metavar or ("NAME" if option.choices else option.name.upper()),
        help=(f"{option.help}: {', '.join(map(str, option.choices))}" if option.choices else option.help) + shown,
    )


def _parser_of(option):
    """What `argparse` calls with the text of an option; a mistake in it stays one sentence."""
    if option.value_aliases:
        return lambda text: option.value_aliases.get(text, text)
    if option.parse is None:
        return option.type

    def parse(text):
        try:
            return option.parse(text)
        except (InputError, OSError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def run(analysis, args):
    """Run an analysis as the parsed options say. Returns: exit code."""
    options = {option.name: getattr(args, option.name) for option in analysis.options}
    _check(analysis, args, options)  # before the seconds that loading takes
    bert = load_model(args) if analysis.model else None
    positional, trace = _inputs(analysis, bert, args)
    if analysis.reports_progress:
        with Progress(args) as progress:
            result = analysis.function(*positional, **options, progress=progress)
    else:
        result = analysis.function(*positional, **options)
    about = {"model": bert.name} if bert else {}
    _write_files(args, result, " · ".join([analysis.name, *about.values()]))
    if args.json:
        tokens = {"tokens": trace.tokens} if trace is not None else {}
        record = {**about, "analysis": analysis.name, **plain(tokens), **result.to_dict()}
        print(json.dumps(record, ensure_ascii=False, allow_nan=False))
        return 0
    print("\n".join([" · ".join([*about.values(), *([" ".join(trace.tokens)] if trace else [])]), result.to_text()]))
    return 0


def _check(analysis, args, options):
    if analysis.inputs == "pair or file" and (args.text_a is None) == (args.input is None):
        raise InputError("Give either a text or --input FILE.")
    if getattr(args, "text_a", None) is not None:
        checked_pair(args.text_a, args.text_b)
    if analysis.target:
        check_target(args)
    analysis.check_options(options)
    if getattr(args, "input", None) is not None:
        read_file(args)


def _inputs(analysis, bert, args):
    """(positional arguments of the function, the trace among them or None)."""
    trace = None
    positional = [bert] if analysis.model else []
    if analysis.inputs in ("pair", "pair or file"):
        if args.text_a is not None:
            trace = bert.trace(args.text_a, args.text_b, args.mask if analysis.masks else ())
        positional.append(trace)
    if analysis.inputs in ("file", "pair or file"):
        positional.append(args.texts if getattr(args, "input", None) is not None else None)
    if analysis.target:
        positional.append(target_of(bert, trace, args))
    return positional, trace


def _write_files(args, result, title):
    if args.csv is not None:
        with writing(args.csv) as file:
            file.write(result.to_frame().to_csv(index=False))
    if args.html is not None:
        from bert_tf.plots.page import figure_page

        with writing(args.html) as file:
            file.write(figure_page(result.figure(), title))
