"""The options for running a command as an Apache Beam pipeline."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bert_tf.cli.shared.answers import BAD_INPUTS
from bert_tf.errors import InputError

if TYPE_CHECKING:
    from bert_tf.batch_jobs.jobs import Job

#: Runners of Apache Beam.
RUNNERS = ("DirectRunner", "FlinkRunner", "SparkRunner", "DataflowRunner")


def add_runner_arguments(parser: argparse._ActionsContainer) -> None:
    """Adds --runner and --runner-options to an `argparse` parser or a group of it."""
    parser.add_argument(
        "--runner", choices=RUNNERS, help="run as an Apache Beam pipeline (see docs/how-to/at_scale.md)"
    )
    parser.add_argument(
        "--runner-options",
        default="",
        metavar="OPTIONS",
        help='options for the runner as one argument, like "--project=p --region=r"',
    )


def run_on_runner(job: Job, args: argparse.Namespace) -> int:
    """Runs a job on the files of `--input` with the runner of `--runner`. Returns: exit code.

    Raises: InputError if an option does not go with a runner.
    """
    if args.input in (None, "-") or args.output in (None, "-"):
        raise InputError("--runner needs --input, a file or a pattern of files, and --output, a folder to write to.")
    if getattr(args, "resume", False):
        raise InputError("--resume does not go with --runner: a pipeline that ended early starts again.")
    from bert_tf.batch_jobs.beam import run_pipeline

    done = run_pipeline(job, args.input, args.output, args.runner, args.runner_options.split())
    if done["bad"] or not args.quiet:
        counts = (done["rows"], "row"), (len(done["parts"]), "file")
        bad = f", {done['bad']:,} bad" if done["bad"] else ""
        rows, files = (f"{number:,} {noun}{'s' * (number != 1)}" for number, noun in counts)
        print(f"{rows}{bad}, in {files} in {args.output}.", file=sys.stderr)
    return BAD_INPUTS if done["bad"] else 0
