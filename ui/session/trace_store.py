"""Traces with attention maps, kept for a while: bounded in bytes for all visitors together.

A trace is found again only under the session that made it, so nobody sees another's text, and goes with it: what is
held for sessions that have ended is dropped within ``_LOOK`` seconds.
"""

import dataclasses
import threading
import time

import numpy as np
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from ui.session import state
from ui.session.byte_store import ByteStore

_LOOK = 30.0  # seconds between two looks for sessions that have ended


class TraceStore(ByteStore):
    """The last used traces of all visitors.

    Args:
        most_bytes: that are held.
        is_here: callable (session) -> whether it goes on; a session is what a key begins with.
    """

    def __init__(self, most_bytes, is_here=lambda session: True):
        super().__init__(most_bytes, size_of)
        self._is_here = is_here

    def put(self, key, trace):
        """Keep ``trace`` under ``key``; one too large for the store is not kept."""
        if size_of(trace) > self._most:
            self.drop(lambda other: other == key)
        else:
            super().put(key, trace)

    def drop_ended(self):
        """Let go what is held for sessions that have ended."""
        self.drop(lambda key: not self._is_here(key[0]))

    def watch(self, seconds):
        """Look for sessions that have ended every so many seconds, for ever; for a thread of its own."""
        while True:
            time.sleep(seconds)
            self.drop_ended()


def size_of(trace):
    """Bytes of a trace's arrays; 0 for None."""
    if trace is None:
        return 0
    return sum(value.nbytes for value in vars(trace).values() if isinstance(value, np.ndarray))


@st.cache_resource(show_spinner=False)
def _store() -> TraceStore:
    store = TraceStore(state.limits().max_trace_megabytes * 1_000_000, state.is_here)
    threading.Thread(target=store.watch, args=(_LOOK,), daemon=True, name="ended sessions").start()
    return store


def _halved(maps):
    """Maps in half precision: NumPy's rounding by TensorFlow, five times as fast where most weights are tiny."""
    import tensorflow as tf

    return tf.cast(maps, tf.float16).numpy()


def attention_trace(shared, masked, texts=None):
    """The trace of the view's texts, or of others, with attention maps, computed if it is not kept.

    Maps of more than 128 tokens are kept in half precision: a screen shows no more of them.
    """
    view = state.view()
    session = get_script_run_ctx().session_id
    a, b = texts or (view.a, view.b)
    key = (session, shared.name, view.precision, a, b, masked)
    trace = _store().get(key)
    if trace is None:
        trace = shared.trace(a, b, masked, attentions=True)
        if trace.length > 128:
            trace = dataclasses.replace(trace, attentions=_halved(trace.attentions))
        _store().put(key, trace)
    return trace
