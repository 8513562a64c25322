"""A new start of the server when nobody is here, as libraries keep memory: TensorFlow alone 0.6 GB."""

import contextlib
import logging
import os
import sys

import streamlit as st
from streamlit.runtime import Runtime, RuntimeState

from bert_tf.resources.memory_budget import resident_bytes
from ui.server import shutdown
from ui.session import downloads, memory_budget, training_jobs

_ANEW = "BERT_TF_EXPLORER_ANEW"  # the environment variable of a server that was started anew
_LOOK = 10.0  # seconds between two looks at the memory
_GROWN = 1.5  # the server starts anew when it holds half as much again as at its start
_log = logging.getLogger("explorer")


def is_first_start():
    """Whether a person or another program has started this server, and not the server itself."""
    return _ANEW not in os.environ


def watch():
    """Start anew when nobody is here any more and the process holds much more than now; on Linux, elsewhere nothing."""
    at_start = resident_bytes()
    if at_start is not None:
        memory_budget.call_every(_LOOK, lambda: _restart_if_grown(at_start), "restart")


def _restart_if_grown(at_start):
    held = resident_bytes()
    if held > _GROWN * at_start and _is_unused() and not shutdown.has_begun():
        _log.warning("Nobody is here: the server starts anew to give %d MB back.", (held - at_start) // 1_000_000)
        _restart()


def _is_unused():
    """Whether all that visitors used was dropped, and nothing goes on without them."""
    return (
        memory_budget.visitors_have_left()
        and Runtime.instance().state is RuntimeState.NO_SESSIONS_CONNECTED
        and not downloads.shared_downloads().running()
        and not training_jobs.running()
    )


def _restart():
    """Replace the program of this process by the same command; its number and its terminal stay."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing is closed
            os.set_inheritable(int(descriptor), int(descriptor) <= 2)  # uvicorn would leave the port open
    os.environ[_ANEW] = "1"
    os.environ["STREAMLIT_SERVER_PORT"] = str(st.get_option("server.port"))  # another than at first may be free now
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
