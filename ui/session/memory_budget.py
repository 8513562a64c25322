"""What this server holds for its visitors: models, traces, snapshots, results of pages.

The budget bounds the memory of the server's process, of which this is the part that can be dropped. Some minutes after
the last visitor has gone, all of it is dropped.
"""

import asyncio
import linecache
import logging
import threading
import time
import weakref

from streamlit import runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from bert_tf.resources.memory_budget import Holder, MemoryBudget, RestOfProcess
from bert_tf.runtime import half_precision
from ui.server import allocator
from ui.session import state
from ui.shell.server_cache import server_cache

_LOOK = 10.0  # seconds between two looks whether anybody is here
# Seconds after which the session of a closed tab is closed. Streamlit keeps it for two minutes, in which its browser
# may come back, and then frees it only when another visitor leaves. Until then it holds what the fragments of the page
# refer to, such as attention maps.
_LEFT = 100.0
_LEFT_IN_NEED = 20.0  # the same while the memory of the server is over its bound
_KEPT_FREE = 20  # of the bound a twentieth is left to what passes need for a moment
_MEASURE = 0.5  # seconds between two looks at the memory of the process
_log = logging.getLogger(__name__)
_loops: list[asyncio.AbstractEventLoop] = []  # that of the server; none in a process that is not one
_app_sessions = weakref.WeakValueDictionary()  # Streamlit's object of each session that it still refers to


@server_cache
def memory_budget() -> MemoryBudget:
    """The budget of this server, ``max_megabytes`` of ``explorer.toml``; in another process, of the values alone."""
    is_server = bool(_loops)
    most = state.limits().max_megabytes * 1_000_000
    if not is_server:
        return MemoryBudget(most)
    budget = MemoryBudget(most - most // _KEPT_FREE, RestOfProcess())
    call_every(_MEASURE, budget.make_room, "memory budget")
    return budget


def prepare():
    """Note the event loop of the server. Call it there."""
    _loops[:] = [asyncio.get_running_loop()]


def close(session):
    """Close a session, unless its browser has come back; from any thread."""
    for loop in _loops:
        loop.call_soon_threadsafe(_close, session)


def _close(session):
    if not state.is_here(session):
        runtime.get_instance().close_session(session)


class Visits(Holder):
    """The visits of a server; several threads may use it.

    It is a holder of the memory budget: a session that has ended is closed earlier where memory is needed. How many
    bytes that frees is not known, so it counts none.

    Args:
        seconds: float. How long after the end of the last visit ``left`` is called; at least ``_LEFT``.
        left: callable (). It is called once for each time that all visitors have gone.
        close: callable (session). It is called once for each session that has ended, ``_LEFT`` seconds later.
        is_here: callable (session) -> whether the session is active.
        clock: callable () -> float, seconds.
    """

    bytes = 0

    def __init__(self, seconds, left, close, is_here=state.is_here, clock=time.monotonic):
        self._seconds = max(seconds, _LEFT)
        self._left, self._close, self._is_here, self._clock = left, close, is_here, clock
        # When each session was last here, and the last of all.
        self._sessions, self._last, self._lock = {}, None, threading.Lock()
        self._have_left = False

    def note(self, session):
        """A session runs a page."""
        with self._lock:
            self._sessions[session] = self._last = self._clock()
            self._have_left = False

    def oldest(self):
        """When the session was here that has ended first of all; None if none may be closed yet."""
        with self._lock:
            session = self._ended_first()
            return None if session is None else self._sessions[session]

    def drop_oldest(self):
        """Close the session that has ended first."""
        with self._lock:
            session = self._ended_first()
            self._sessions.pop(session, None)
        if session is not None:
            self._close(session)

    def _ended_first(self):
        until = self._clock() - _LEFT_IN_NEED
        ended = [(last, session) for session, last in self._sessions.items() if last <= until]
        return next((session for _, session in sorted(ended) if not self._is_here(session)), None)

    def have_left(self):
        """Whether ``left`` was called, and nobody has come since."""
        with self._lock:
            return self._have_left

    def after_drops(self):
        """The server closes sessions a moment later."""
        _give_back_later()

    def drop_all(self):
        """Nothing: `look` closes all sessions that have ended."""

    def look(self):
        """Close the sessions that have ended, and call ``left`` if all visitors have gone for long enough."""
        with self._lock:
            now = self._clock()
            here = {session: now for session in self._sessions if self._is_here(session)}
            self._sessions |= here
            ended = [session for session, last in self._sessions.items() if now - last >= _LEFT]
            for session in ended:
                del self._sessions[session]
            self._last = now if here else self._last
            all_left = self._last is not None and now - self._last >= self._seconds
            if all_left:
                self._last = None
        for session in ended:
            self._close(session)
        if all_left:
            self._left()
            with self._lock:
                self._have_left = self._last is None


def call_every(seconds, function, name):
    """Call a function every ``seconds`` seconds, for ever, in a thread with a name; an error is logged."""

    def watch():
        while True:
            time.sleep(seconds)
            try:
                function()
            except Exception:
                _log.exception("The thread %r goes on after an error.", name)

    threading.Thread(target=watch, daemon=True, name=name).start()


@server_cache
def _visits() -> Visits:
    visits = Visits(60 * state.limits().idle_minutes, _drop_all, close)
    memory_budget().add(visits)
    call_every(_LOOK, visits.look, "visits")
    return visits


def visitors_have_left() -> bool:
    """Whether all visitors have gone, and what this server held for them was dropped."""
    return _visits().have_left()


_give_back_later = allocator.GiveBackLater(3.0)


def _drop_all():
    # Streamlit refers to the session that it served last until another one comes, and its widgets refer to attention
    # maps and models.
    for session, app_session in list(_app_sessions.items()):
        if not state.is_here(session):
            app_session.session_state.__init__()  # its `clear` keeps what it knows of the widgets
    memory_budget().drop_all()
    half_precision.release_memory()
    linecache.clearcache()  # TensorFlow reads its own source files into it
    allocator.give_back()
    allocator.drop_kernels()
    _give_back_later()  # what the closed sessions hold is free a moment later


def note_visit():
    """Note that this visit is here. Call it in every run; a run without a visitor (`python app.py`) notes nothing."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None:
        if (app_session := runtime.get_instance().get_app_session(context.session_id)) is not None:
            _app_sessions[context.session_id] = app_session
        _visits().note(context.session_id)
