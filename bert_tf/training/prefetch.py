"""Batches made ahead, in a thread."""

import queue
import threading


def prefetch(items, depth=8):
    """The same items, made ahead in a thread; an error there is raised here. The thread ends with its reader."""
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
        except BaseException as error:  # handed over whole: the reader must see it, whatever it is
            put(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        while (item := ready.get()) is not end:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
