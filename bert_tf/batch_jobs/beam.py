"""A job as an Apache Beam pipeline, with RunInference.

The pipeline reads the rows in the same windows as one machine, so the forward passes have the same batches and the
answers are the same. Needs `requirements-beam.txt`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bert_tf.batch_jobs.jobs import FeaturesJob, answer_line, loaded
from bert_tf.batch_jobs.vectors import VECTOR_WRITERS
from bert_tf.errors import InputError
from bert_tf.files import write_json
from bert_tf.resources.beam_pipeline import beam_pipeline
from bert_tf.resources.remote import fetch, filesystem, find_remote, is_remote, remote_write
from bert_tf.runtime.read_ahead import read_ahead_windows

if TYPE_CHECKING:
    from bert_tf.batch_jobs.jobs import Answering, Job

try:
    import apache_beam as beam
    from apache_beam.ml.inference.base import KeyedModelHandler, ModelHandler, RunInference
except ImportError as error:
    raise InputError(
        f"--runner needs Apache Beam ({error}); install it with `pip install -r requirements-beam.txt`."
    ) from error

#: The file that marks the folder of the answers as complete.
MANIFEST = "manifest.json"
#: Windows of a file of answers: with batches of 32 rows it has at most 65,536 rows, which one worker holds in memory.
WINDOWS_PER_PART = 64


class JobHandler(ModelHandler[Any, Any, Any]):
    """The `ModelHandler` of a job: its examples are rows, its predictions the answers, in the same order.

    A row that cannot be read has its exception as its prediction, except in a `FeaturesJob`, which it ends.

    Args:
        job: `Job`.

    Example:

    ```python
    job = PredictJob("bert-base-cased-embedded")
    rows | RunInference(JobHandler(job))  # rows: (text_a, text_b or None, mask)
    ```
    """

    def __init__(self, job: Job) -> None:
        super().__init__(min_batch_size=job.batch_size, max_batch_size=32 * job.batch_size)
        self.job = job

    def load_model(self) -> Answering:
        """Load the model, once in a worker process."""
        return loaded(self.job)

    def run_inference(
        self, batch: Sequence[Any], model: Answering, inference_args: dict[str, Any] | None = None
    ) -> Iterable[Any]:
        """Yield the answer of each row."""
        return model(batch)

    def batch_elements_kwargs(self) -> dict[str, Any]:
        """The bounds of the batches that RunInference makes."""
        return self._batching_kwargs


def run_pipeline(job: Job, pattern: str, output: str, runner: str, options: Sequence[str] = ()) -> dict[str, Any]:
    """Run a job with a Beam runner, and wait until it has finished.

    Args:
        job: `Job`.
        pattern: str. A file, or a glob pattern of files, which every worker can read.
        output: str. A folder that every worker can write to: `part-FILE-NUMBER`, JSON lines or vectors. Sorted by name
            and joined, the parts are what one machine writes. The extension of the folder is that of its parts.
        runner: str. The name of a Beam runner.
        options: list of str. The arguments of the runner.

    Returns: the manifest, which is written last: "rows", "bad" rows and the names of the "parts".

    Raises: InputError if there is no file or no row, all rows are bad, or `output` holds answers already.
    """
    _extension(output, job)
    system, folder = filesystem(output)
    if system.exists(f"{folder}/{MANIFEST}"):
        raise InputError(f"{output} holds answers; give another --output, or delete that folder.")
    files = find_remote(pattern)
    if any(own == system and path.startswith(f"{folder}/part-") for own, path in map(filesystem, files)):
        raise InputError(f"{output} holds files of the input, which would be deleted: give another --output.")
    system.makedirs(folder, exist_ok=True)
    for old in system.glob(f"{folder}/part-*"):  # of a run that did not end
        system.rm_file(old)
    handler: Any = KeyedModelHandler(JobHandler(job)).with_no_batching()
    with beam_pipeline(runner, options) as pipeline:
        (
            pipeline
            | beam.Create(list(enumerate(files)))
            | "spread files" >> beam.Reshuffle()
            | "read" >> beam.FlatMap(_windows, job)
            | "spread windows" >> beam.Reshuffle()
            | RunInference(handler)
            | "part of answer" >> beam.Map(_by_part, job)
            | beam.GroupByKey()
            | "write" >> beam.Map(_write_part, output, job)
            | beam.combiners.ToList()
            | "finish" >> beam.Map(_finish, output)
        )
    manifest = json.loads(system.cat_file(f"{folder}/{MANIFEST}"))
    if manifest["rows"] == manifest["bad"]:
        raise InputError(f"None of the {manifest['rows']} rows could be answered; {output} holds the reasons.")
    return manifest


@dataclass(frozen=True, order=True)
class _Place:
    """Where a row comes from: the number of its file, of its window in the file, and of its line."""

    file: int
    window: int
    line: int


def _windows(numbered_file, job):
    """Yields the windows of a file, each a list of (place, row)."""
    file, path = numbered_file
    with tempfile.TemporaryDirectory(prefix="bert-tf-") as folder:
        local = str(fetch(path, folder)) if is_remote(path) else path
        for window, rows in enumerate(read_ahead_windows(job.rows(local), job.batch_size)):
            yield [(_Place(file, window, line), _portable(row)) for line, row in rows]


def _portable(row):
    # Errors of tables have arguments that pickle does not know.
    return InputError(str(row)) if isinstance(row, Exception) else row


def _by_part(answered, job):
    """((number of the file, of the part), (place, is bad, line of JSON or vector))."""
    place, answer = answered
    is_bad = isinstance(answer, Exception)
    value = answer if isinstance(job, FeaturesJob) else answer_line(place.line, answer)
    return (place.file, place.window // WINDOWS_PER_PART), (place, is_bad, value)


def _write_part(grouped, output, job):
    """Writes one part. Returns: (its name, its rows, its bad rows)."""
    part, answers = grouped
    answers = sorted(answers, key=lambda answer: answer[0])
    extension = _extension(output, job)
    name = f"part-{part[0]:05d}-{part[1]:05d}.{extension}"
    with remote_write(f"{output.rstrip('/')}/{name}") as temporary, open(temporary, "wb") as file:
        values = [value for _, _, value in answers]
        if isinstance(job, FeaturesJob):
            VECTOR_WRITERS[extension](file, values, len(values), len(values[0]))
        else:
            file.write("".join(values).encode("utf-8"))
    return name, len(answers), sum(is_bad for _, is_bad, _ in answers)


def _extension(output, job):
    """The extension of the parts, that of the folder.

    Raises: InputError if the job does not write this format.
    """
    extension = output.rstrip("/").lower().rpartition(".")[2]
    known = tuple(VECTOR_WRITERS) if isinstance(job, FeaturesJob) else ("jsonl",)
    if extension not in known:
        raise InputError(f"{output}: with a runner the output is a folder named .{' or .'.join(known)}.")
    return extension


def _finish(parts, output):
    rows, bad = sum(rows for _, rows, _ in parts), sum(bad for _, _, bad in parts)
    with remote_write(f"{output.rstrip('/')}/{MANIFEST}") as temporary:
        write_json(temporary, {"rows": rows, "bad": bad, "parts": sorted(name for name, _, _ in parts)})
