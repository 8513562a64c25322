"""The snapshots of trainings in memory: for all visitors together, bounded in bytes."""

import operator
import threading

import streamlit as st

from bert_tf.errors import report
from ui.session import jobs, state
from ui.session.byte_store import ByteStore
from ui.session.model_store import disable_keras_reset
from ui.session.session_cache import cached
from ui.widgets.formatting import count

_SMALL = 100_000_000  # bytes of a series that the page waits for; a larger one is read and asked beside it


class SeriesStore(ByteStore):
    """The last used series, the longest unused thrown away first when they hold more than ``most_bytes``."""

    def __init__(self, most_bytes):
        super().__init__(most_bytes, operator.attrgetter("nbytes"))


@st.cache_resource(show_spinner=False)
def _store() -> SeriesStore:
    return SeriesStore(_most())


def _most():
    return state.limits().max_snapshot_megabytes * 1_000_000


def held_snapshots(run):
    """The snapshots of a ``Run`` that are held here, evenly spread over it, with a sentence where some are left out.

    None, with the reason said, where there is no room for one.
    """
    from bert_tf.explain.models.snapshot_series import snapshot_bytes, spread_snapshots

    found, whole = spread_snapshots(run.snapshots, _most()), snapshot_bytes(run.snapshots)
    if len(found) == len(run.snapshots):
        return found
    subject = "they" if len(run.snapshots) > 1 else "it"
    takes = f"{subject} would take {whole / 1e6:,.0f} MB, and {_most() / 1e6:,.0f} MB are held"
    remedy = "Whoever runs this explorer can raise max_snapshot_megabytes in explorer.toml."
    if not found:
        st.warning(
            f"The {count(len(run.snapshots), 'snapshot')} of this training are too large: {takes} here. {remedy}",
            icon=":material/memory:",
        )
        return None
    st.info(
        f"{len(found)} of {len(run.snapshots)} snapshots are shown: all together {takes} here. {remedy}",
        icon=":material/memory:",
    )
    return found


def series(snapshots):
    """The ``SnapshotSeries`` of some snapshots; None while it is read, and then the page shows how far that is."""
    key = tuple((one.step, str(one.folder)) for one in snapshots)
    found = _store().get(key)
    if found is not None:
        return found
    disable_keras_reset()
    label = f"Reading {count(len(snapshots), 'snapshot')}"
    if _is_small(snapshots):
        with st.spinner(f"{label} …", show_time=True):
            return _read(key, snapshots)
    if jobs.result("time_lapse_series", key, label, lambda progress: bool(_read(key, snapshots, progress))) is None:
        return None
    found = _store().get(key)
    if found is None:  # it has made room for another visitor's meanwhile
        jobs.drop("time_lapse_series")
        state.rerun()
    return found


def snapshot_traces(found, snapshots, key, *asked):
    """What ``found.snapshot_traces`` says of a text, kept until the key changes; None while it is asked."""
    label = "Asking every snapshot"
    if _is_small(snapshots):
        with st.spinner(f"{label} …"):
            return cached("time_lapse", key, lambda: found.snapshot_traces(*asked))
    return jobs.result("time_lapse", key, label, lambda progress: found.snapshot_traces(*asked, progress=progress))


def _is_small(snapshots):
    from bert_tf.explain.models.snapshot_series import snapshot_bytes

    return snapshot_bytes(snapshots) <= _SMALL


@st.cache_resource(show_spinner=False)
def _reader() -> threading.Lock:
    return threading.Lock()


def _read(key, snapshots, progress=None):
    """One series at a time, of whichever visitor: two that are read at once would hold twice the bound."""
    from bert_tf.explain.models.snapshot_series import SnapshotSeries, snapshot_bytes

    while not _reader().acquire(timeout=0.2):
        report(progress, 0, len(snapshots))
    try:
        found = _store().get(key)
        if found is None:  # nobody has read it meanwhile
            # Before they are read: never both.
            _store().make_room(snapshot_bytes(snapshots))
            found = SnapshotSeries(snapshots, progress)
            _store().put(key, found)
        return found
    finally:
        _reader().release()
