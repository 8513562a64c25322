"""Downloads of released models, started from a page; they run in threads and are shared by all visitors.

A download continues while its visitor uses other widgets, or leaves. Every visitor who opens the model's card sees the
progress bar.
"""

import functools
import threading
import time

import streamlit as st

from bert_tf.errors import report
from ui.session import model_store, state
from ui.session.jobs import Job
from ui.shell import error_messages
from ui.shell.server_cache import server_cache
from ui.widgets.formatting import escape_markdown, megabytes

_POLL = 0.5  # seconds between two updates of the progress bar
_AT_ONCE = 2  # downloads that run at the same time; a third one waits

_PRESSED = "_pressed_downloads"  # in the session: name of a model -> the view in which the visitor pressed its button


class Download(Job):
    """The download of a model: a job with bytes as its steps.

    Args:
        name: of a released model. slots: see ``Job``.

    Attributes:
        held: bytes on disk from an earlier download that did not end.
    """

    def __init__(self, name, slots):
        from bert_tf.checkpoints import partial_download_bytes

        self.held, self._since = partial_download_bytes(name), None
        super().__init__(name, functools.partial(_fetch, name), slots)

    @property
    def rate(self):
        """Bytes a second since the first byte; None in the first second and before the first byte."""
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
    """The downloads that run, and the last one of each model."""

    def __init__(self):
        self._downloads, self._lock, self._slots = {}, threading.Lock(), threading.Semaphore(_AT_ONCE)

    def get(self, name):
        """The ``Download`` of a model, or None."""
        return self._downloads.get(name)

    def running(self):
        """The names of the models whose downloads wait or run."""
        return [name for name, download in list(self._downloads.items()) if is_running(download)]

    def start(self, name):
        """Start or resume the download of a model; does nothing if it runs already."""
        with self._lock:
            if not is_running(self._downloads.get(name)):
                self._downloads[name] = Download(name, self._slots)


@server_cache
def shared_downloads() -> Downloads:
    """The downloads of all visitors."""
    return Downloads()


def is_running(download):
    """Whether ``download``, a ``Download`` or None, is waiting or running."""
    return download is not None and download.running


def download_model_button(info, where):
    """Draw a button that downloads a model; while the download runs, its progress bar; if it failed, the error.

    Only the visitor who pressed the button sees the error, until the visitor changes the view.

    Args:
        info: ``ModelInfo`` of a released model that is not installed.
        where: str, a part of the button's key, for pages that draw two buttons for one model.
    """
    from bert_tf.checkpoints import partial_download_bytes

    last = shared_downloads().get(info.name)
    if is_running(last):
        _bar(info, where)
        return
    pressed = st.session_state.get(_PRESSED, {})
    if pressed.get(info.name) != state.view():
        pressed.pop(info.name, None)
    elif last is not None and last.problem:
        st.error(f"{escape_markdown(last.problem)}\n\n{_by_hand(info.name)}", icon=":material/cloud_off:")
    st.button(
        f"Get {info.name} ({megabytes(info.size_bytes)})",
        icon=":material/download:",
        key=f"w_get_{where}_{info.name}",
        on_click=_press,
        args=(info.name,),
    )
    if held := partial_download_bytes(info.name):
        st.caption(f"{megabytes(held)} of it are downloaded already; the download continues from there.")


def _by_hand(name):
    """How to bring a model from another machine, in sentences: the command, the folder and its files."""
    from bert_tf.checkpoints import download_folder, models_dir

    folder, files = download_folder(name)
    listed = f" with {', '.join(files[:-1])} and {files[-1]}" if files else ""
    return (
        f"Without a network here: run `python -m bert_tf download {name}` on another machine, and copy the folder "
        f"`{folder}`{listed} from its models folder into `{models_dir()}`. The model appears without a restart."
    )


def _press(name):
    st.session_state.setdefault(_PRESSED, {})[name] = state.view()
    shared_downloads().start(name)


def downloads_allowed():
    """Whether visitors may download models."""
    return state.limits().download


@functools.partial(error_messages.fragment, run_every=_POLL)
def _bar(info, where):
    current = shared_downloads().get(info.name)
    if not is_running(current):
        if current is not None and current.status == "done":
            st.toast(f"{info.name} is installed.", icon=":material/check:")
        state.rerun()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.progress(
            min(current.done / current.total, 1.0) if current.total else 0.0,
            text=f"{info.name}{_progress_text(current)}",
        )
        st.button(
            "Stop",
            icon=":material/stop_circle:",
            key=f"w_stop_{where}_{info.name}",
            on_click=current.stop,
            disabled=current.stopping,
            width="content",
        )


def _progress_text(download):
    """The progress of a download in words."""
    if download.stopping:
        return " stops …"
    if download.status == "waiting":
        return " waits for other downloads to end"
    if not download.total:
        return " is being looked up …"
    rate = f", {megabytes(download.rate)} a second" if download.rate else ""
    held = f", continued from {megabytes(download.held)}" if download.held else ""
    return f": {megabytes(download.done)} of {megabytes(download.total)}{rate}{held}"
