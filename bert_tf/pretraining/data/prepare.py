"""Makes sharded records from text files on one machine, with several processes and constant memory; resumable.

This process reads the files and sends chunks of documents to worker processes. It writes their results in the order of
the text. So the records depend on the text and the settings alone, not on the number of processes.
"""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.folder_lock import locked_folder
from bert_tf.pretraining.data.chunks import ByteCountingOpener, group_files, read_chunks
from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.data.examples import make_examples
from bert_tf.pretraining.data.packing import check_documents
from bert_tf.pretraining.data.records import encode, frame
from bert_tf.pretraining.data.shards import ShardWriter, settings_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bert_tf.pretraining.data.chunks import Chunk
    from bert_tf.pretraining.data.examples import CorpusCounts, ExampleSettings
    from bert_tf.tokenizers.base import BaseTokenizer


#: From this size of the files in bytes, worker processes and tensorflow-text save more time than they take to start.
_LARGE_TEXT_BYTES = 8_000_000
#: Environment of a worker process: one thread, as each process uses one core, and no GPU.
_WORKER_ENVIRONMENT = {
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
}


def prepare(
    files: Sequence[str | Path],
    output: str | Path,
    tokenizer: BaseTokenizer,
    settings: ExampleSettings,
    shards: int = 16,
    processes: int | None = None,
    text_field: str = "text",
    progress: Callable[[int, CorpusCounts], object] | None = None,
) -> CorpusCounts:
    """Writes masked examples of text files as sharded TFRecord files.

    Args:
        files: list of str or Path. The files for `documents.read_documents`.
        output: str or Path. The folder to write to; an interrupted run in it is resumed.
        tokenizer: a `Tokenizer`.
        settings: `ExampleSettings`.
        shards: int. The number of files.
        processes: int. The number of processes; None for one per core, or a single one for a small text.
        text_field: str. The field of JSON lines that holds the text.
        progress: callable (bytes of the files done, `CorpusCounts`) that is called after each chunk; or None.

    Returns: `CorpusCounts`.

    Raises:
        TextError: there is no text, or one document if two are needed; a file cannot be read; or `output` holds other
            records.
        FolderInUse: another `prepare` is writing to the folder.
        ValueError: less than one shard or process.
    """
    sized = [(str(path), os.path.getsize(path)) for path in files]
    is_large = sum(size for _, size in sized) >= _LARGE_TEXT_BYTES
    processes = processes if processes is not None else _all_cores() if is_large else 1
    for name, number in (("--shards", shards), ("--processes", processes)):
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be 1 or more.")
    with locked_folder(output, "prepare"):
        writer = ShardWriter(output, settings_manifest(settings, tokenizer, shards, sized, text_field))
        if not writer.finished:
            _write(writer, sized, processes, (tokenizer, settings, shards, is_large), text_field, progress)
        return writer.counts


def _all_cores():
    """One process per core; Windows can wait for no more than 61 (`ProcessPoolExecutor`)."""
    cores = os.cpu_count() or 1
    return min(cores, 61) if sys.platform == "win32" else cores


def _write(writer, sized, processes, worker_arguments, text_field, progress):
    """Writes the examples that are not in the shards yet, and the other files of the folder."""
    open_file = ByteCountingOpener()
    chunks = (
        chunk
        for number, paths in enumerate(group_files(sized))
        for chunk in read_chunks(number, paths, text_field, open_file)
    )
    remaining = ((chunk, open_file.done) for chunk in itertools.islice(chunks, writer.chunks, None))
    for (parts, counts), done in _in_order(remaining, processes, worker_arguments):
        writer.append(parts, counts)
        if progress:
            progress(done, writer.counts)
    tokenizer, settings, *_ = worker_arguments
    try:
        check_documents(settings.objective, writer.counts.documents)
        if not writer.counts.examples:
            raise TextError(f"No text to make examples of in {', '.join(path for path, _ in sized)}.")
    except TextError:
        writer.discard()
        raise
    tokenizer.save(writer.folder)
    writer.finish()


class ChunkWorker:
    """A callable that makes the records of a chunk in a worker process.

    Args:
        tokenizer: as `prepare`.
        settings: as `prepare`.
        shards: as `prepare`.
        fast: bool. Whether to load tensorflow-text, which `Tokenizer.batch_ids` then uses.
    """

    def __init__(self, tokenizer: BaseTokenizer, settings: ExampleSettings, shards: int, fast: bool) -> None:
        self.tokenizer, self.settings, self.shards = tokenizer, settings, shards
        if fast:
            try:
                import tensorflow_text  # noqa: F401
            except ImportError:
                pass  # The Python tokenizer does the same, but slower.

    def __call__(self, chunk: Chunk) -> tuple[list[bytes], CorpusCounts]:
        """Makes the records of a `Chunk`. Returns: ([bytes for each shard], `CorpusCounts`)."""
        batch, counts = make_examples(chunk, self.tokenizer, self.settings)
        framed = [frame(record) for record in encode(batch)]
        # Each chunk starts at another shard, so that all shards grow equally.
        first = int(np.random.default_rng((chunk.number, chunk.group)).integers(self.shards))
        return [b"".join(framed[(shard - first) % self.shards :: self.shards]) for shard in range(self.shards)], counts


def _in_order(chunks, processes, worker_arguments):
    """Yields (result of a `ChunkWorker`, bytes read) for each (chunk, bytes read), in the same order."""
    if processes == 1:
        worker = ChunkWorker(*worker_arguments)
        for chunk, done in chunks:
            yield worker(chunk), done
        return
    with ProcessPoolExecutor(processes, _context(fast=worker_arguments[-1]), _start_process, worker_arguments) as pool:
        waiting: deque[tuple] = deque()
        try:
            for chunk, done in chunks:
                waiting.append((pool.submit(_work, chunk), done))
                if len(waiting) > 2 * processes:
                    future, future_done = waiting.popleft()
                    yield future.result(), future_done
            while waiting:
                future, future_done = waiting.popleft()
                yield future.result(), future_done
        except (BrokenProcessPool, BrokenPipeError) as error:
            raise OSError(
                "A worker process was ended from outside (is there enough memory for "
                f"{processes}?); give the same command again to resume."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _context(fast):
    """The multiprocessing context: processes are not forked from this one, as a fork copies locks that threads hold.

    On Linux they are forked from multiprocessing's fork server, which has loaded tensorflow-text once for all of them.
    It ends with this process.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *(["bert_tf.pretraining.data.preload"] if fast else [])])
    saved = {name: os.environ.get(name) for name in _WORKER_ENVIRONMENT}
    os.environ.update(_WORKER_ENVIRONMENT)
    try:
        forkserver.ensure_running()
    finally:
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return context


_worker: ChunkWorker  # of a worker process; `_start_process` makes it


def _start_process(*worker_arguments):
    global _worker
    os.environ.update(_WORKER_ENVIRONMENT)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _worker = ChunkWorker(*worker_arguments)


def _exit_with_parent():
    """Ends this process when its parent has ended; if the parent was killed, nothing else ends it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _work(chunk):
    return _worker(chunk)
