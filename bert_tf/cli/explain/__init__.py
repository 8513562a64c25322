"""`python -m bert_tf explain ANALYSIS`: explains predictions; each `Analysis` of the catalogue is a sub-command."""

import argparse

from bert_tf.analyses import catalogue
from bert_tf.cli.explain import analysis as analysis_command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds a sub-command for each analysis to an `argparse` parser."""
    commands = parser.add_subparsers(metavar="ANALYSIS", required=True)
    for name, analysis in catalogue().items():
        title = analysis.summary[0].upper() + analysis.summary[1:] + "."
        command = commands.add_parser(name, aliases=analysis.aliases, help=analysis.summary, description=title)
        analysis_command.add_arguments(command, analysis)
        command.set_defaults(analysis=analysis)


def run(args: argparse.Namespace) -> int:
    """Runs the requested analysis. Returns: exit code."""
    return analysis_command.run(args.analysis, args)
