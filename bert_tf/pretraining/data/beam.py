"""Text files to sharded records as an Apache Beam pipeline: `prepare` on many machines.

The chunks of documents and what is made of each are those of `prepare`; Beam alone decides which example
comes into which shard. Needs `requirements-beam.txt`.
"""

import json
import tempfile
from pathlib import Path

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

try:
    import apache_beam as beam
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.io.tfrecordio import WriteToTFRecord
    from apache_beam.options.pipeline_options import PipelineOptions
except ImportError as error:
    raise ValueError(
        f"--runner needs Apache Beam ({error}); install it with `pip install -r requirements-beam.txt`."
    ) from error


def run_pipeline(patterns, output, tokenizer, settings, shards, text_field, runner, options=()):
    """Makes the records of `prepare` with a Beam runner, and waits for the end.

    Args:
        patterns: files or globs, of any file system Beam knows (`gs://…`). output: folder, likewise.
        tokenizer, settings, shards, text_field: as `prepare.prepare`.
        runner: name of a Beam runner. options: arguments for it, list of str.

    Returns: `CorpusCounts`.

    Raises: TextError if there is no file or no text, or `output` holds records.
    """
    if FileSystems.exists(FileSystems.join(output, MANIFEST)):
        raise TextError(f"{output} holds records; give another --output, or delete that folder.")
    files = _find(patterns)
    manifest = settings_manifest(settings, tokenizer, shards, files, text_field, _open)
    groups = list(enumerate(group_files(files)))
    # Before the manifest, as in `prepare`: what has one is whole.
    _save_tokenizer(output, tokenizer)
    with beam.Pipeline(options=PipelineOptions(["--runner", runner, *options])) as pipeline:
        made = (
            pipeline
            | beam.Create(groups)
            | "spread files" >> beam.Reshuffle()
            | beam.FlatMap(_chunks, text_field)
            | "spread chunks" >> beam.Reshuffle()
            | beam.ParDo(_MakeExamples(tokenizer, settings)).with_outputs("counts", main="records")
        )
        written = made.records | WriteToTFRecord(
            FileSystems.join(output, PREFIX), file_name_suffix=SUFFIX, num_shards=shards
        )
        # The manifest says that all is there, so it waits for the shards.
        (made.counts | beam.CombineGlobally(_total) | beam.Map(_finish, output, manifest, beam.pvalue.AsList(written)))
    found = json.loads(_read(FileSystems.join(output, MANIFEST)))
    return CorpusCounts(**{name: found[name] for name in CorpusCounts().numbers()})


def _find(patterns):
    """Sorted (path, bytes) of each pattern's files."""
    files = []
    for pattern in patterns:
        found = sorted((file.path, file.size_in_bytes) for file in FileSystems.match([pattern])[0].metadata_list)
        if not found:
            raise TextError(f"There is no text file {pattern}.")
        files += found
    return files


def _chunks(group, text_field):
    """The chunks of (number, paths)."""
    return read_chunks(*group, text_field, _open)


def _open(path, mode):
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


class _MakeExamples(beam.DoFn):
    """Chunks to serialized examples; their `CorpusCounts` beside them."""

    def __init__(self, tokenizer, settings):
        self.tokenizer, self.settings = tokenizer, settings

    def process(self, chunk):
        """One chunk."""
        batch, counts = make_examples(chunk, self.tokenizer, self.settings)
        yield from encode(batch)
        yield beam.pvalue.TaggedOutput("counts", counts)


def _total(several):
    return sum(several, CorpusCounts())


def _finish(counts, output, manifest, _shards):
    """Writes what stands beside the shards, the manifest last."""
    if not counts.examples:
        raise TextError("There is no text to make examples of in these files.")
    check_documents(manifest["settings"]["objective"], counts.documents)
    _write(FileSystems.join(output, TOKEN_COUNTS), token_counts_bytes(counts))
    found = FileSystems.match([FileSystems.join(output, f"{PREFIX}-*{SUFFIX}")])[0].metadata_list
    sizes = {file.path.rpartition("/")[2]: file.size_in_bytes for file in found}
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
