"""An Apache Beam pipeline that does the work of `prepare` on many machines: text files to sharded records.

The chunks and their examples are the same as in `prepare`; only the distribution of the examples over the shards is
Beam's. Needs `requirements-beam.txt`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.pretraining.data.chunks import group_files, read_chunks
from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.data.examples import CorpusCounts, make_examples
from bert_tf.pretraining.data.packing import check_documents
from bert_tf.pretraining.data.records import encode
from bert_tf.pretraining.data.shards import (
    MANIFEST,
    PREFIX,
    SUFFIX,
    TOKEN_COUNTS,
    settings_manifest,
    shard_name,
    token_counts_bytes,
)
from bert_tf.resources.beam_pipeline import beam_pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.pretraining.data.examples import ExampleSettings
    from bert_tf.tokenizers.base import BaseTokenizer


try:
    import apache_beam as beam
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.io.tfrecordio import WriteToTFRecord
except ImportError as error:
    raise ValueError(
        f"--runner needs Apache Beam ({error}); install it with `pip install -r requirements-beam.txt`."
    ) from error


def run_pipeline(
    patterns: Sequence[str],
    output: str,
    tokenizer: BaseTokenizer,
    settings: ExampleSettings,
    shards: int,
    text_field: str,
    runner: str,
    options: Sequence[str] = (),
) -> CorpusCounts:
    """Makes the records of `prepare` with a Beam runner, and waits until it has finished.

    Args:
        patterns: list of str. Files or glob patterns in any file system that Beam supports (`gs://…`).
        output: str. The folder to write to, in any of these file systems.
        tokenizer: as `prepare.prepare`.
        settings: as `prepare.prepare`.
        shards: as `prepare.prepare`.
        text_field: as `prepare.prepare`.
        runner: str. The name of a Beam runner.
        options: list of str. The arguments of the runner.

    Returns: `CorpusCounts`.

    Raises: TextError if there is no file or no text, or if `output` already holds records.
    """
    if FileSystems.exists(FileSystems.join(output, MANIFEST)):
        raise TextError(f"{output} holds records; give another --output, or delete that folder.")
    files = _find(patterns)
    manifest = settings_manifest(settings, tokenizer, shards, files, text_field, _open)
    groups = list(enumerate(group_files(files)))
    # Before the manifest, as in `prepare`: a folder with a manifest is complete.
    _save_tokenizer(output, tokenizer)
    with beam_pipeline(runner, options) as pipeline:
        outputs = (
            pipeline
            | beam.Create(groups)
            | "spread files" >> beam.Reshuffle()
            | beam.FlatMap(_chunks, text_field)
            | "spread chunks" >> beam.Reshuffle()
            | beam.ParDo(_MakeExamples(tokenizer, settings)).with_outputs("counts", main="records")
        )
        written = outputs.records | WriteToTFRecord(
            FileSystems.join(output, PREFIX), file_name_suffix=SUFFIX, num_shards=shards
        )
        # The manifest marks the folder as complete, so it is written after the shards.
        (
            outputs.counts
            | beam.CombineGlobally(_total)
            | beam.Map(_finish, output, manifest, beam.pvalue.AsList(written))
        )
    manifest = json.loads(_read(FileSystems.join(output, MANIFEST)))
    return CorpusCounts(**{name: manifest[name] for name in CorpusCounts().numbers()})


def _find(patterns):
    """A list of (path, bytes): the sorted files of each pattern."""
    files = []
    for pattern in patterns:
        matches = sorted((file.path, file.size_in_bytes) for file in FileSystems.match([pattern])[0].metadata_list)
        if not matches:
            raise TextError(f"There is no text file {pattern}.")
        files += matches
    return files


def _chunks(group, text_field):
    """The chunks of a group of files, (number, paths)."""
    number, paths = group
    return read_chunks(number, paths, text_field, _open)


def _open(path, mode):
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


class _MakeExamples(beam.DoFn):
    """Makes serialized examples of chunks; their `CorpusCounts` are the output "counts"."""

    def __init__(self, tokenizer, settings):
        self.tokenizer, self.settings = tokenizer, settings

    def process(self, chunk):
        """Yields the serialized examples of a chunk, then its counts."""
        batch, counts = make_examples(chunk, self.tokenizer, self.settings)
        yield from encode(batch)
        yield beam.pvalue.TaggedOutput("counts", counts)


def _total(counts):
    return sum(counts, CorpusCounts())


def _finish(counts, output, manifest, _shards):
    """Writes the other files of the folder; the manifest is the last one."""
    if not counts.examples:
        raise TextError("There is no text to make examples of in these files.")
    check_documents(manifest["settings"]["objective"], counts.documents)
    _write(FileSystems.join(output, TOKEN_COUNTS), token_counts_bytes(counts))
    files = FileSystems.match([FileSystems.join(output, f"{PREFIX}-*{SUFFIX}")])[0].metadata_list
    sizes = {file.path.rpartition("/")[2]: file.size_in_bytes for file in files}
    names = (shard_name(number, manifest["shards"]) for number in range(manifest["shards"]))
    values = json.dumps({**manifest, "sizes": [sizes[name] for name in names], **counts.numbers()}, indent=2)
    _write(FileSystems.join(output, MANIFEST), values.encode())


def _save_tokenizer(output, tokenizer):
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        for path in Path(folder).iterdir():
            _write(FileSystems.join(output, path.name), path.read_bytes())


def _read(path):
    with FileSystems.open(path) as file:
        return file.read()


def _write(path, data):
    with FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
        file.write(data)
