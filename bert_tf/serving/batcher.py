"""Requests that arrive while a forward pass runs are answered together by the next one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any


class Batcher:
    """A thread that runs a function on many items at once. An item never waits for others that are yet to come.

    Args:
        run: callable (key, list of items) -> iterable of (index of the item, result or exception), in any order.
            A request is answered as soon as its results are there, while the others are computed.
        batch_size: int. The largest number of items in one call.
    """

    def __init__(self, run: Callable[[Any, list[Any]], Any], batch_size: int) -> None:
        self._run, self._batch_size = run, batch_size
        self._queue: SimpleQueue[tuple[Hashable, Any, Future] | None] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="batcher").start()

    def submit(self, key: Hashable, items: Sequence[Any]) -> list[Future]:
        """Queue items; those with equal keys can share a call.

        Returns: a `Future` for each item; one that is cancelled before its call begins is not computed.
        """
        futures: list[Future] = [Future() for _ in items]
        for item, future in zip(items, futures, strict=True):
            self._queue.put((key, item, future))
        return futures

    def close(self) -> None:
        """End the thread after the items that wait."""
        self._queue.put(None)

    def _work(self):
        entry = self._queue.get()
        while entry is not None:
            batch = [entry]
            while (entry := self._next()) is not None and len(batch) < self._batch_size and entry[0] == batch[0][0]:
                batch.append(entry)
            self._answer(batch)
            if entry is None:
                entry = self._queue.get()

    def _next(self):
        """The next entry, or None if nothing waits; the mark of the end is put back."""
        try:
            entry = self._queue.get_nowait()
        except Empty:
            return None
        if entry is None:
            self._queue.put(None)
        return entry

    def _answer(self, batch):
        batch = [entry for entry in batch if entry[2].set_running_or_notify_cancel()]  # nobody waits for the others
        if not batch:
            return
        futures = dict(enumerate(future for _, _, future in batch))
        try:
            for index, result in self._run(batch[0][0], [item for _, item, _ in batch]):
                _settle(futures.pop(index), result)
        except BaseException as error:  # it belongs to the requests, not to this thread
            for future in futures.values():
                _settle(future, error)


def _settle(future, result):
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
