"""Long work beside the page: in a thread of its own, with progress, a way to stop it, and a result that is kept.

A page calls ``result(name, key, label, function)``: the first time it starts the work and shows a bar with a
button to stop; once done it gives the result, until the key changes. What a run of the page no longer asks for is
stopped; while another page is open it goes on.
"""

import functools
import threading
import time

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from bert_tf.errors import Cancelled
from ui.session import state
from ui.session.model_store import disable_keras_reset
from ui.session.session_cache import visitor_cache
from ui.shell.error_messages import user_message
from ui.widgets.formatting import escape_markdown

_POLL = 0.4  # seconds between two looks at a job that runs
#: Seconds of patience with work that mostly takes longer than a blink.
SHORT = 0.1
_GOES_ON = ("waiting", "running")
_ASKED = "_asked_jobs"


class Job:
    """One piece of work in a thread.

    Args:
        key: what it is the work for; anything that compares.
        function: callable (progress) -> result, where progress is callable (done, total) -> False to stop.
        slots: semaphore that bounds how many run at once.
        wanted: callable () -> whether somebody still wants the result; looked at between steps.
        page: that asks for it.

    Attributes:
        status: "waiting", "running", "done", "stopped" or "failed". done, total: steps.
        result: what the function returned. problem: a sentence for the visitor, when it failed.
    """

    def __init__(self, key, function, slots, wanted=lambda: True, page=""):
        self.key, self.page, self.status, self.done, self.total = key, page, "waiting", 0, 0
        self.result = self.problem = None
        self.began = time.monotonic()
        self._function, self._slots, self._wanted = function, slots, wanted
        self._stop = threading.Event()
        threading.Thread(target=self._work, daemon=True, name="job").start()

    @property
    def running(self):
        """Whether there is still something to wait for."""
        return self.status in _GOES_ON

    @property
    def stopping(self):
        """Whether it was asked to end."""
        return self._stop.is_set()

    def stop(self):
        """Ask it to end after the step under way."""
        self._stop.set()

    def _work(self):
        while not self._slots.acquire(timeout=0.2):
            if self._stop.is_set() or not self._wanted():
                self._function, self.status = None, "stopped"
                return
        try:
            self.status = "running"
            self.result = self._function(self._progress)
            self.status = "done"
        except Cancelled:
            self.status = "stopped"
        except MemoryError:
            self.problem, self.status = "There is not enough memory for this. Choose less.", "failed"
        except Exception as error:
            self.problem = user_message(error, "Something went wrong here, and it is noted in the server's log.")
            self.status = "failed"
        finally:
            self._function = None  # and what it was about to work on
            self._slots.release()

    def _progress(self, done, total):
        self.done, self.total = done, total
        return not self._stop.is_set() and self._wanted()


@st.cache_resource(show_spinner=False)
def _slots() -> threading.Semaphore:
    return threading.Semaphore(state.limits().max_jobs)


def job(name):
    """This visitor's job called ``name``, or None."""
    return _jobs().get(name)


def start(name, key, function):
    """Begin a job; one of the same name is stopped. Returns: the ``Job``."""
    drop(name)
    session = get_script_run_ctx().session_id

    def work(progress):
        disable_keras_reset()  # the page's own runs, which show how far it is, would reset what it makes
        return function(progress)

    _jobs()[name] = made = Job(key, work, _slots(), lambda: state.is_here(session), state.view().page)
    return made


def drop(name):
    """Stop a job and forget it."""
    old = _jobs().pop(name, None)
    if old:
        old.stop()
        visitor_cache().drop(f"job {name}")


def begin():
    """A run begins: it has asked for nothing yet."""
    st.session_state[_ASKED] = set()


def end():
    """A run is over: stop what its page began and no longer asks for, as nothing shows it any more."""
    for name, one in list(_jobs().items()):
        if one.running and one.page == state.view().page and name not in st.session_state[_ASKED]:
            drop(name)


def result(name, key, label, function, patience=0.25, stops=True):
    """The result of ``function`` for ``key``, or None while there is none; then the page shows why.

    Args:
        name: of the job; a visitor has one of each name.
        key: what it depends on; with another key it starts anew.
        label: what the bar says.
        function: as ``Job`` takes it.
        patience: seconds that the page waits for it: what takes no longer than a blink needs no bar; ``SHORT``
            for what mostly takes longer.
        stops: whether the function calls progress; what does not has a button only while it waits for other work.
    """
    st.session_state[_ASKED].add(name)
    found = job(name)
    if found is None or found.key != key:
        found = start(name, key, function)
    deadline = time.monotonic() + patience
    while found.running and time.monotonic() < deadline:
        time.sleep(0.01)
    status = found.status  # looked at once: the work goes on
    _count(name)
    if status == "done":
        return found.result
    if status in _GOES_ON:
        _bar(name, label, stops)
    else:
        _draw_ended(found, name, label)
    return None


@st.fragment(run_every=_POLL)
def _bar(name, label, stops):
    found = job(name)
    if found is None or not found.running:
        state.rerun()
    share = found.done / found.total if found.total else 0.0
    seconds = time.monotonic() - found.began
    left = f", about {seconds / share - seconds:.0f} s left" if share > 0.02 and seconds > 2 else ""
    steps = f" {found.done:,} of {found.total:,}{left}" if found.total else " …"
    waiting = " waits for other work to end" if found.status == "waiting" else steps
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.progress(min(share, 1.0), text=f"{label}:{waiting}")
        if stops or found.status == "waiting":
            st.button("Stop", icon=":material/stop_circle:", key=f"w_stop_{name}", on_click=found.stop, width="content")


def _draw_ended(found, name, label):
    """Stopped or failed: said, with a way to begin anew."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if found.problem:
            st.error(escape_markdown(found.problem), icon=":material/error:")
        else:
            st.info(f"{label}: stopped.", icon=":material/stop_circle:")
        st.button("Start again", key=f"w_again_{name}", on_click=drop, args=(name,), width="content")


def _count(used):
    """Results count to what is kept for the visitor; ``used``: the name of the one that this run looks at."""
    for name, one in list(_jobs().items()):
        place = f"job {name}"
        if one.status == "done" and not visitor_cache().get(place, id(one), use=name == used):
            visitor_cache().put(
                place, id(one), (one.key, one.result), functools.partial(_forget, name, one), name == used
            )


def _forget(name, one):
    if job(name) is one:
        drop(name)


def _jobs():
    return st.session_state.setdefault("_jobs", {})
