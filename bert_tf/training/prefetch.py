"""Prefetching: a thread makes the next batches while the current one is used."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_Item = TypeVar("_Item")


def prefetch(items: Iterable[_Item], depth: int = 8) -> Iterator[_Item]:
    """Yields the same items, which a thread makes ahead of time.

    An error in the thread is raised here. The thread ends when the caller stops reading.

    Args:
        items: iterable.
        depth: int. The largest number of items that wait to be read.
    """
    ready: queue.Queue = queue.Queue(depth)
    end, stopped = object(), threading.Event()

    def put(item):
        while not stopped.is_set():
            try:
                return ready.put(item, timeout=0.5)
            except queue.Full:
                continue

    def work():
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
            put(end)
        except BaseException as error:  # passed on to the reader, which must see every kind of error
            put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        while (item := ready.get()) is not end:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
