"""Fetching a released model from a page: in a thread of its own, for all visitors together.

A download goes on while its visitor presses other things, or leaves; whoever looks at the same model sees its bar.
"""

import functools
import threading
import time

import streamlit as st

from bert_tf.errors import report
from ui.session import model_store, state
from ui.session.jobs import Job
from ui.widgets.formatting import escape_markdown, megabytes

_POLL = 0.5  # seconds between two drawings of the bar
_AT_ONCE = 2  # models fetched at the same time; a third one waits


class Download(Job):
    """A model on its way here; a job, its steps counted in bytes.

    Args:
        name: of a released model. slots: as ``Job`` takes them.

    Attributes: held: bytes that an earlier download had left.
    """

    def __init__(self, name, slots):
        from bert_tf.checkpoints import partial_download_bytes

        self.held, self._since = partial_download_bytes(name), None
        super().__init__(name, functools.partial(_fetch, name), slots)

    @property
    def rate(self):
        """Bytes a second since the first came; None while nothing can be said."""
        seconds = time.monotonic() - self._since if self._since is not None else 0
        return (self.done - self.held) / seconds if seconds > 1 and self.done > self.held else None

    def _progress(self, done, total):
        if self._since is None:
            self._since = time.monotonic()
        return super()._progress(done, total)


def _fetch(name, progress):
    from bert_tf.checkpoints import download

    download(name, progress=functools.partial(report, progress))
    model_store.catalogue.clear()


class Downloads:
    """What is being fetched here, and how each model's last download ended."""

    def __init__(self):
        self._found, self._lock, self._slots = {}, threading.Lock(), threading.Semaphore(_AT_ONCE)

    def get(self, name):
        """The ``Download`` of a model, or None."""
        return self._found.get(name)

    def start(self, name):
        """Begin to fetch a model, or go on with it; nothing where somebody has begun already."""
        with self._lock:
            if not is_running(self._found.get(name)):
                self._found[name] = Download(name, self._slots)


@st.cache_resource(show_spinner=False)
def shared_downloads() -> Downloads:
    """The downloads of all visitors."""
    return Downloads()


def is_running(found):
    """Whether ``found`` is a ``Download`` that has not ended."""
    return found is not None and found.running


def download_model_button(info, where):
    """A button that fetches the model of ``info`` (a ``ModelInfo``), and what comes of it.

    Args:
        info: a released model that is not on this machine.
        where: makes the button's key unlike that of another place.
    """
    from bert_tf.checkpoints import partial_download_bytes

    found = shared_downloads().get(info.name)
    if is_running(found):
        _bar(info, where)
        return
    if found is not None and found.problem:
        st.error(escape_markdown(found.problem), icon=":material/cloud_off:")
    st.button(
        f"Get {info.name} ({megabytes(info.size_bytes)})",
        icon=":material/download:",
        key=f"w_get_{where}_{info.name}",
        on_click=shared_downloads().start,
        args=(info.name,),
    )
    if held := partial_download_bytes(info.name):
        st.caption(f"Goes on from {megabytes(held)}: so much of it is here.")


def downloads_allowed():
    """Whether visitors may fetch models here."""
    return state.limits().download


@st.fragment(run_every=_POLL)
def _bar(info, where):
    found = shared_downloads().get(info.name)
    if not is_running(found):
        if found is not None and found.status == "done":
            st.toast(f"{info.name} is here.", icon=":material/check:")
        state.rerun()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.progress(
            min(found.done / found.total, 1.0) if found.total else 0.0, text=f"{info.name}{_progress_text(found)}"
        )
        st.button(
            "Stop",
            icon=":material/stop_circle:",
            key=f"w_stop_{where}_{info.name}",
            on_click=found.stop,
            disabled=found.stopping,
            width="content",
        )


def _progress_text(found):
    """How far a download is."""
    if found.stopping:
        return " stops …"
    if found.status == "waiting":
        return " waits for other downloads to end"
    if not found.total:
        return " is being looked for …"
    rate = f", {megabytes(found.rate)} a second" if found.rate else ""
    held = f", went on from {megabytes(found.held)}" if found.held else ""
    return f": {megabytes(found.done)} of {megabytes(found.total)}{rate}{held}"
