"""Prefetching: a thread makes the next batches while the current one is used."""

import queue
import threading


def prefetch(items, depth=8):
    """Yields the same items, which a thread makes ahead of time.

    An error in the thread is raised here. The thread ends when the caller stops reading.

    Args:
        items: iterable.
        depth: int. The largest number of items that wait to be read.
    """
    ready, end, stopped = queue.Queue(depth), object(), threading.Event()

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
