"""A store of traces with attention maps: one for all visitors, within the memory budget.

The session is a part of a trace's key, so a visitor never gets the text of another. The traces of a session that has
ended are dropped within ``_LOOK`` seconds.
"""

import dataclasses

import numpy as np
from streamlit.runtime.scriptrunner import get_script_run_ctx

from bert_tf.resources.memory_budget import ByteStore, WeakValues
from bert_tf.runtime.half_precision import to_float16
from ui.session import state
from ui.session.memory_budget import call_every, memory_budget
from ui.shell.server_cache import server_cache

_LOOK = 30.0  # seconds between two searches for sessions that have ended


class TraceStore(ByteStore):
    """A ``ByteStore`` of traces; the first item of a key is the session.

    To drop a trace frees nothing while a page refers to it. Until then it is taken back rather than computed again.

    Args:
        budget: ``MemoryBudget``.
        is_here: callable (session) -> whether the session is active.
    """

    def __init__(self, budget, is_here=lambda session: True):
        super().__init__(budget, size_of)
        self._is_here, self._alive = is_here, WeakValues()

    def get(self, key):
        """The trace under ``key``, or None."""
        trace = super().get(key)
        if trace is None and (trace := self._alive.get(key)) is not None:
            self.put(key, trace)
        return trace

    def put(self, key, trace):
        """Store ``trace`` under ``key``; a trace that is larger than the whole budget is not stored."""
        if size_of(trace) > self._budget.most_bytes:
            self.drop(lambda other: other == key)
        else:
            self._alive.put(key, trace)
            super().put(key, trace)

    def drop(self, is_gone):
        """Drop the traces with a key for which ``is_gone(key)`` is true; they are not taken back."""
        super().drop(is_gone)
        self._alive.drop(is_gone)

    def drop_ended(self):
        """Drop the traces of sessions that have ended."""
        self.drop(lambda key: not self._is_here(key[0]))


def size_of(trace):
    """The bytes of a trace's arrays; 0 for None."""
    if trace is None:
        return 0
    return sum(value.nbytes for value in vars(trace).values() if isinstance(value, np.ndarray))


@server_cache
def _store() -> TraceStore:
    store = TraceStore(memory_budget(), state.is_here)
    call_every(_LOOK, store.drop_ended, "ended sessions")
    return store


def attention_trace(shared, masked, texts=None):
    """The trace of the view's texts with attention maps, from the store or computed.

    Maps of more than 128 tokens are stored as float16: a screen cannot show more digits.

    Args:
        shared: ``SharedModel``. masked: token positions to mask. texts: (text A, text B) in place of the view's texts.
    """
    view = state.view()
    session = get_script_run_ctx().session_id
    a, b = texts or (view.a, view.b)
    key = (session, shared.name, view.precision, a, b, masked)
    trace = _store().get(key)
    if trace is None:
        trace = shared.trace(a, b, masked, attentions=True)
        if trace.length > 128:
            trace = dataclasses.replace(trace, attentions=to_float16(trace.attentions))
        _store().put(key, trace)
    return trace
