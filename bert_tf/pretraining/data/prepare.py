"""Text files to sharded records on one machine: several processes, constant memory, and a run can be resumed.

The files are read here, chunks of documents go out to the processes, and what comes back is written in the
order of the text. So the files depend on the text and the settings alone, not on the processes.
"""

import itertools
import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np

from bert_tf.folder_lock import locked_folder
from bert_tf.pretraining.data.chunks import ByteCountingOpener, group_files, read_chunks
from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.data.examples import make_examples
from bert_tf.pretraining.data.packing import check_documents
from bert_tf.pretraining.data.records import encode, frame
from bert_tf.pretraining.data.shards import ShardWriter, settings_manifest

#: Bytes of files from which further processes, and tensorflow-text, are worth the time they take to start.
_MUCH_TEXT = 8_000_000
#: Each process has a core to itself, and threads of its own would only get in the others' way.
_ALONE = {
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
}


def prepare(files, output, tokenizer, settings, shards=16, processes=None, text_field="text", progress=None):
    """Writes masked examples of text files as sharded TFRecord.

    Args:
        files: paths for `documents.read_documents`. output: folder; an interrupted run in it goes on.
        tokenizer: a `text.Tokenizer`. settings: `ExampleSettings`. shards: files to spread them over.
        processes: of this machine; None for one a core, or one alone for little text. text_field: where JSON lines
            have their text.
        progress: called with (bytes of the files done, `Counts`) after each chunk.

    Returns: `Counts`.

    Raises: TextError if there is no text, or one document where two are needed, a file cannot be read, or `output`
        holds something else. FolderInUse if another `prepare` is writing there. ValueError on less than one shard or
        process.
    """
    sized = [(str(path), os.path.getsize(path)) for path in files]
    much = sum(size for _, size in sized) >= _MUCH_TEXT
    processes = processes if processes is not None else os.cpu_count() if much else 1
    for name, number in (("--shards", shards), ("--processes", processes)):
        if number < 1:
            raise ValueError(f"{name} is {number}; it must be 1 or more.")
    with locked_folder(output, "prepare"):
        writer = ShardWriter(output, settings_manifest(settings, tokenizer, shards, sized, text_field))
        if not writer.finished:
            _write(writer, sized, processes, (tokenizer, settings, shards, much), text_field, progress)
        return writer.counts


def _write(writer, sized, processes, worker_arguments, text_field, progress):
    """Writes what is not yet in the shards, and what stands beside them."""
    opened = ByteCountingOpener()
    chunks = (
        chunk
        for number, paths in enumerate(group_files(sized))
        for chunk in read_chunks(number, paths, text_field, opened)
    )
    todo = ((chunk, opened.done) for chunk in itertools.islice(chunks, writer.chunks, None))
    for (parts, counts), done in _in_order(todo, processes, worker_arguments):
        writer.append(parts, counts)
        if progress:
            progress(done, writer.counts)
    tokenizer, settings, *_ = worker_arguments
    try:
        if not writer.counts.examples:
            raise TextError(f"No text to make examples of in {', '.join(path for path, _ in sized)}.")
        check_documents(settings.objective, writer.counts.documents)
    except TextError:
        writer.discard()
        raise
    tokenizer.save(writer.folder)
    writer.finish()


class ChunkWorker:
    """What a process does with chunks.

    Args: as `prepare`'s; fast: whether to load tensorflow-text, which `Tokenizer.batch_ids` then uses.
    """

    def __init__(self, tokenizer, settings, shards, fast):
        self.tokenizer, self.settings, self.shards = tokenizer, settings, shards
        if fast:
            try:
                import tensorflow_text  # noqa: F401
            except ImportError:
                pass  # The exact tokenizer does the same, slower.

    def __call__(self, chunk):
        """([bytes for each shard], `Counts`) of a chunk."""
        batch, counts = make_examples(chunk, self.tokenizer, self.settings)
        framed = [frame(record) for record in encode(batch)]
        # Each chunk begins at another shard, so that they grow alike.
        first = int(np.random.default_rng((chunk.number, chunk.group)).integers(self.shards))
        return [b"".join(framed[(shard - first) % self.shards :: self.shards]) for shard in range(self.shards)], counts


def _in_order(todo, processes, worker_arguments):
    """Yields (result of a `ChunkWorker`, mark) for each (chunk, mark), in their order."""
    if processes == 1:
        worker = ChunkWorker(*worker_arguments)
        for chunk, mark in todo:
            yield worker(chunk), mark
        return
    with ProcessPoolExecutor(processes, _context(fast=worker_arguments[-1]), _start_process, worker_arguments) as pool:
        waiting = deque()
        try:
            for chunk, mark in todo:
                waiting.append((pool.submit(_work, chunk), mark))
                if len(waiting) > 2 * processes:
                    future, done = waiting.popleft()
                    yield future.result(), done
            while waiting:
                future, done = waiting.popleft()
                yield future.result(), done
        except BrokenProcessPool as error:
            raise OSError(
                "A process that makes examples was ended from outside (is there enough memory for "
                f"{processes}?); give the same command again, and it goes on."
            ) from error
        finally:
            pool.shutdown(cancel_futures=True)


def _context(fast):
    """How the processes are started: not forked from this one, which would copy locks that libraries' threads may hold.

    On Linux they come from a process that has loaded tensorflow-text for all of them, and done nothing else; it ends
    with this one (multiprocessing's fork server).
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *(["bert_tf.pretraining.data.preload"] if fast else [])])
    before = {name: os.environ.get(name) for name in _ALONE}
    os.environ.update(_ALONE)
    try:
        forkserver.ensure_running()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return context


def _start_process(*worker_arguments):
    global _work_on
    os.environ.update(_ALONE)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _work_on = ChunkWorker(*worker_arguments)


def _leave_with_parent():
    """Ends this process when the one that started it is gone, killed perhaps: nobody else would."""
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _work(chunk):
    return _work_on(chunk)
