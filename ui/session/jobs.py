"""Background jobs: long work in a thread, with a progress bar, a button to stop it, and a stored result.

A page calls ``result(name, key, label, function)``. The first call starts the job and draws a progress bar with a
button to stop it. After the job, calls with the same key return the result. A job that its page no longer asks for is
stopped; while another page is open, it continues. When the tab is closed it is stopped half a minute later: a browser
whose connection broke comes back in that time, and finds its job.
"""

import functools
import math
import threading
import time

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from bert_tf.errors import Cancelled
from ui.first_paint import SKELETON
from ui.session import state
from ui.session.fair_lock import presses
from ui.session.model_store import disable_keras_reset
from ui.session.session_cache import visitor_cache
from ui.shell import error_messages
from ui.shell.server_cache import server_cache
from ui.widgets.formatting import escape_markdown, rounded_time

_POLL = 0.4  # seconds between two updates of the progress bar
#: The ``patience`` of ``result``, in seconds, for work that mostly takes longer than the default patience.
SHORT = 0.1
_UNFINISHED = ("waiting", "running")
_ASKED = "_asked_jobs"
_AWAY = 30.0  # seconds after which the job of a session that is not here is stopped
_STEP = 0.1  # a job that has worked for so many seconds waits for the presses of all visitors


class Job:
    """A function that runs in a thread.

    Args:
        key: the inputs of the work; any object with ``==``.
        function: callable (progress) -> result. ``progress`` is callable (done, total) -> False if the job must stop.
        slots: semaphore that bounds the number of jobs that run at the same time.
        wanted: callable () -> whether the result is still needed; called between steps.
        page: name of the page that started the job.

    Attributes:
        status: "waiting", "running", "done", "stopped" or "failed". done, total: numbers of steps.
        began: the time by ``time.monotonic`` at which its steps began, after it has waited for its place and memory.
        result: the value that the function returned. problem: a sentence for the visitor if the job failed, else None.
    """

    def __init__(self, key, function, slots, wanted=lambda: True, page=""):
        self.key, self.page, self.status, self.done, self.total = key, page, "waiting", 0, 0
        self.result = self.problem = None
        self._had_no_memory = -math.inf  # the last time at which it waited for memory
        self.began = self._rested = self._progressed = time.monotonic()
        self._function, self._slots, self._wanted = function, slots, wanted
        self._stop = threading.Event()
        threading.Thread(target=self._work, daemon=True, name="job").start()

    @property
    def running(self):
        """Whether the job waits or runs."""
        return self.status in _UNFINISHED

    @property
    def waits(self):
        """Whether the job waits for other work, that has its place or the memory that it needs."""
        return self.status == "waiting" or time.monotonic() - self._had_no_memory < 1

    @property
    def expected_end(self):
        """The time by ``time.monotonic`` at which the job ends if all its steps take equally long; infinite if it is
        not known."""
        if not self.done or not self.total:
            return math.inf
        return self.began + (self._progressed - self.began) * self.total / self.done

    @property
    def stopping(self):
        """Whether ``stop`` was called."""
        return self._stop.is_set()

    def stop(self):
        """Stop the job after the current step."""
        self._stop.set()

    def _work(self):
        while not self._slots.acquire(timeout=0.2):
            if self._stop.is_set() or not self._wanted():
                self._function, self.status = None, "stopped"
                return
        try:
            self.began = self._progressed = time.monotonic()
            self.status = "running"
            self.result = self._function(self._progress)
            self.status = "done"
        except Cancelled:
            self.status = "stopped"
        except MemoryError:
            self.problem, self.status = "There is not enough memory for this. Choose less.", "failed"
        except BaseException as error:  # also a panic of a library in Rust, or the page would wait for ever
            self.problem = error_messages.user_message(error)
            self.status = "failed"
        finally:
            self._function = None  # free the arrays that the function holds
            self._slots.release()

    def _progress(self, done, total):
        if total:
            self.done, self.total, self._progressed = done, total, time.monotonic()
        else:  # again and again while it waits for memory (`SharedModel.run`) or for what another job uses
            self._had_no_memory = time.monotonic()
            if not self.done:
                self.began = self._had_no_memory  # nothing is done yet, so this is no time of its steps
        if time.monotonic() - self._rested >= _STEP:
            presses().give_way()
            self._rested = time.monotonic()
        return not self._stop.is_set() and self._wanted()


@server_cache
def _slots() -> threading.Semaphore:
    return threading.Semaphore(state.limits().max_jobs)


def job(name):
    """This visitor's job called ``name``, or None."""
    return _jobs().get(name)


def start(name, key, function):
    """Start a job and return the ``Job``; an earlier job of the same name is stopped."""
    drop(name)
    # The session is read before the job begins: the visitor's next press cuts the run off where it reads the session,
    # and a job without a name could be neither found nor stopped.
    session, jobs, page = get_script_run_ctx().session_id, _jobs(), state.view().page

    def work(progress):
        disable_keras_reset()  # the runs of the page that draw the progress bar would reset Keras during the job
        return function(progress)

    jobs[name] = started = Job(key, work, _slots(), _wanted_by(session), page)
    return started


def _wanted_by(session):
    """A callable () -> False once a session has been away for ``_AWAY`` seconds, from the first call that missed it."""
    missed = None

    def is_wanted():
        nonlocal missed
        if state.is_here(session):
            missed = None
            return True
        missed = time.monotonic() if missed is None else missed
        return time.monotonic() - missed < _AWAY

    return is_wanted


def drop(name):
    """Stop a job and drop its result."""
    dropped = _jobs().pop(name, None)
    if dropped:
        dropped.stop()
        visitor_cache().drop(_place(name))


def begin():
    """Begin a run of the page: it has asked for no job yet."""
    st.session_state[_ASKED] = set()


def end():
    """End a run of the page: stop the jobs that the page started earlier and has not asked for in this run."""
    for name, other in list(_jobs().items()):
        if other.running and other.page == state.view().page and name not in st.session_state[_ASKED]:
            drop(name)


def result(name, key, label, function, patience=0.25, stops=True, skeleton=True):
    """The result of ``function`` for ``key``; None before it is done, with a progress bar or the error on the page.

    Args:
        name: of the job; a visitor has one job of each name.
        key: the inputs of the function; a job with another key is replaced by a new one.
        label: the text of the progress bar.
        function: see ``Job``.
        patience: seconds to wait for the result before the progress bar is drawn; ``SHORT`` for work that mostly
            takes longer. A result that is expected within twice this time is waited for: after a bar it would come
            later.
        stops: whether the function calls its ``progress``. If not, the button to stop it is drawn only while the job
            waits for other jobs.
        skeleton: whether grey shapes stand in the place of the result meanwhile; False beside results of other work.
    """
    st.session_state[_ASKED].add(name)
    current = job(name)
    if current is None or current.key != key:
        current = start(name, key, function)
    now = time.monotonic()
    deadline, last = now + patience, now + 2 * patience
    with presses().paused():
        while current.running and (now < deadline or now < last and current.expected_end < last):
            time.sleep(0.01)
            now = time.monotonic()
    status = current.status  # read once, as the job can end in between
    _count_results(name)
    if status == "done":
        return current.result
    if status in _UNFINISHED:
        _bar(name, label, stops)
        if skeleton:
            st.html(SKELETON)
    else:
        _draw_ended(current, name, label)
    return None


@functools.partial(error_messages.fragment, run_every=_POLL)
def _bar(name, label, stops):
    current = job(name)
    if current is None or not current.running:
        state.rerun()
    share, now = current.done / current.total if current.total else 0.0, time.monotonic()
    is_known = share > 0.02 and now - current.began > 2
    left = f", about {rounded_time(max(current.expected_end - now, 0))} left" if is_known else ""
    steps = f" {current.done:,} of {current.total:,}{left}" if current.total else " …"
    progress = " waits for other work to end" if current.waits else steps
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.progress(min(share, 1.0), text=f"{label}:{progress}")
        if stops or current.status == "waiting":
            key = f"w_stop_{name}"
            st.button("Stop", icon=":material/stop_circle:", key=key, on_click=current.stop, width="content")


def _draw_ended(ended, name, label):
    """Draw the error of a failed job, or that a job was stopped, and a button to start it again."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if ended.problem:
            st.error(escape_markdown(ended.problem), icon=":material/error:")
        else:
            st.info(f"{label}: stopped.", icon=":material/stop_circle:")
        st.button("Start again", key=f"w_again_{name}", on_click=drop, args=(name,), width="content")


def _count_results(used):
    """Put the results of finished jobs into the visitor's cache, so that they count to its bytes.

    Args:
        used: name of the job whose result this run uses.
    """
    for name, ended in list(_jobs().items()):
        place = _place(name)
        if ended.status == "done" and not visitor_cache().get(place, id(ended), use=name == used):
            visitor_cache().put(
                place,
                id(ended),
                (ended.key, ended.result),
                functools.partial(_drop_job, _jobs(), name, ended),
                name == used,
            )


def _drop_job(jobs, name, ended):
    # The jobs are an argument: the cache drops values of this visit in the thread of another one too.
    if jobs.get(name) is ended:
        jobs.pop(name, None)  # the thread of its visitor may have dropped it in the meantime


def _place(name):
    return f"job {name}"


def _jobs():
    return st.session_state.setdefault("_jobs", {})
