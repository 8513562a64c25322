"""`explain ANALYSIS`: why a model answers as it does; every `Analysis` of the catalogue is a subcommand."""

from bert_tf.analyses import catalogue
from bert_tf.cli.explain import analysis as analysis_command


def add_arguments(parser):
    """Add a subcommand for each analysis to an `argparse` parser."""
    commands = parser.add_subparsers(metavar="ANALYSIS", required=True)
    for name, analysis in catalogue().items():
        title = analysis.summary[0].upper() + analysis.summary[1:] + "."
        command = commands.add_parser(name, aliases=analysis.aliases, help=analysis.summary, description=title)
        analysis_command.add_arguments(command, analysis)
        command.set_defaults(analysis=analysis)


def run(args):
    """Run the analysis that was asked for. Returns: exit code."""
    return analysis_command.run(args.analysis, args)
