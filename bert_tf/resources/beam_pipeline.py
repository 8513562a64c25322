"""An Apache Beam pipeline on a runner that the user names. Needs `requirements-beam.txt`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bert_tf.errors import InputError

if TYPE_CHECKING:
    import apache_beam


@contextmanager
def beam_pipeline(runner: str, options: Sequence[str] = ()) -> Iterator[apache_beam.Pipeline]:
    """A pipeline that runs at the end of the block, which waits until it has finished.

    Args:
        runner: str. The name of a Beam runner.
        options: sequence of str. The arguments of the runner.

    Raises: InputError if the runner needs a program that cannot be fetched.
    """
    import apache_beam
    from apache_beam.options.pipeline_options import PipelineOptions

    try:
        with apache_beam.Pipeline(options=PipelineOptions(["--runner", runner, *options])) as pipeline:
            yield pipeline
    except RuntimeError as error:
        if "job server" not in str(error):
            raise
        raise InputError(f"{runner} cannot begin. {error}") from None
