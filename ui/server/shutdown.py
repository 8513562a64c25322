"""The end of the server: it takes at most some seconds, and trainings are told to save first."""

import os
import signal
import sys
import threading
import time

from uvicorn.server import HANDLED_SIGNALS

from ui.session import training_jobs

_GRACE = 2.0  # seconds that the server gets to close its connections
_begun = threading.Event()


def prepare():
    """Bound the time that the server takes to end after SIGTERM or Ctrl-C. Call it when the server handles signals.

    The server waits until every browser has answered and every computation has ended, which can take over ten seconds.
    """
    if threading.current_thread() is threading.main_thread():  # no other thread may handle signals
        for number in HANDLED_SIGNALS:
            if callable(handler := signal.getsignal(number)):
                signal.signal(number, _bounded(handler))


def has_begun():
    """Whether a signal has told the server to end."""
    return _begun.is_set()


def leave(code=0):
    """End the process at once, with an exit code: freeing the modules of the interpreter and of TensorFlow takes
    seconds."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _bounded(handler):
    def bounded_handler(number, stack):
        _begun.set()
        training_jobs.leave_all()
        threading.Thread(target=_end, daemon=True, name="end of the server").start()
        handler(number, stack)

    return bounded_handler


def _end():
    time.sleep(_GRACE)
    leave()
