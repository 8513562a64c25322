"""The end of the server: it takes at most some seconds, and trainings are told to save first."""

import atexit
import functools
import os
import sys
import threading
import time

from streamlit.web.server import Server

from ui.session import training_jobs

_GRACE = 2.0  # seconds that Streamlit gets to close its connections


def prepare():
    """Bound the time that the server takes to end after SIGTERM or Ctrl-C. Call it in every run; it acts once.

    Streamlit waits until every browser has answered and every computation has ended, which can take over ten seconds.
    """
    if not hasattr(Server.stop, "__wrapped__"):
        Server.stop = _bounded(Server.stop)


def _bounded(stop):
    @functools.wraps(stop)
    def bounded_stop(server):
        training_jobs.leave_all()
        # Once the interpreter frees its modules, no thread of Python runs: TensorFlow's took seconds.
        atexit.register(_exit)
        threading.Thread(target=_end, daemon=True, name="end of the server").start()
        stop(server)

    return bounded_stop


def _end():
    time.sleep(_GRACE)
    _exit()


def _exit():
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)
