"""What this server holds for its visitors: models, traces, snapshots, results of pages.

The budget bounds it in bytes. Some minutes after the last visitor has gone, all of it is dropped.
"""

import threading
import time

from streamlit.runtime.scriptrunner import get_script_run_ctx

from bert_tf.resources.memory_budget import MemoryBudget
from ui.server import allocator
from ui.session import state
from ui.shell.server_cache import server_cache

_LOOK = 10.0  # seconds between two looks whether anybody is here


@server_cache
def memory_budget() -> MemoryBudget:
    """The budget of this server, ``max_megabytes`` of ``explorer.toml``."""
    return MemoryBudget(state.limits().max_megabytes * 1_000_000)


class Visits:
    """The visits of a server; several threads may use it.

    Args:
        seconds: float. How long after the end of the last visit ``left`` is called.
        left: callable (). It is called once for each time that all visitors have gone.
        is_here: callable (session) -> whether the session is active.
        clock: callable () -> float, seconds.
    """

    def __init__(self, seconds, left, is_here=state.is_here, clock=time.monotonic):
        self._seconds, self._left, self._is_here, self._clock = seconds, left, is_here, clock
        self._sessions, self._last, self._lock = set(), None, threading.Lock()  # _last: when somebody was here

    def note(self, session):
        """A session runs a page."""
        with self._lock:
            self._sessions.add(session)
            self._last = self._clock()

    def look(self):
        """Call ``left`` if all visitors have gone for long enough."""
        with self._lock:
            self._sessions = {session for session in self._sessions if self._is_here(session)}
            if self._last is None:
                return
            if self._sessions:
                self._last = self._clock()
                return
            if self._clock() - self._last < self._seconds:
                return
            self._last = None
        self._left()


def call_every(seconds, function, name):
    """Call a function every ``seconds`` seconds, for ever, in a thread with a name."""

    def watch():
        while True:
            time.sleep(seconds)
            function()

    threading.Thread(target=watch, daemon=True, name=name).start()


@server_cache
def _visits() -> Visits:
    visits = Visits(60 * state.limits().idle_minutes, _drop_all)
    call_every(_LOOK, visits.look, "visits")
    return visits


def _drop_all():
    memory_budget().drop_all()
    allocator.give_back()


def note_visit():
    """Note that this visit is here. Call it in every run; a run without a visitor (`python app.py`) notes nothing."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None:
        _visits().note(context.session_id)
