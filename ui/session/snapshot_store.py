"""The snapshots of trainings in memory: shared by all visitors, within the memory budget."""

import operator
import threading

import streamlit as st

from bert_tf.errors import report
from bert_tf.resources.memory_budget import ByteStore
from ui.session import jobs, state
from ui.session.memory_budget import memory_budget
from ui.session.model_store import disable_keras_reset
from ui.session.session_cache import cached
from ui.shell.server_cache import server_cache
from ui.widgets.formatting import count

_SMALL = 100_000_000  # the page waits for a series of fewer bytes; a larger one is read and run in a background job
_WATCHED = 120.0  # seconds that a visitor may look at a series without a press, before it can be dropped
_READING = threading.Lock()  # held while a series is read


@server_cache
def _store() -> ByteStore:
    return ByteStore(memory_budget(), operator.attrgetter("nbytes"), keep_seconds=_WATCHED)


def _most():
    return state.limits().max_snapshot_megabytes * 1_000_000


def held_snapshots(run):
    """The snapshots of a ``Run`` to hold in memory, evenly spread; a note on the page if some are left out.

    None, with a warning on the page, if the store has no room for one snapshot.
    """
    from bert_tf.explain.models.snapshot_series import snapshot_bytes, spread_snapshots

    fitting, total_bytes = spread_snapshots(run.snapshots, _most()), snapshot_bytes(run.snapshots)
    if len(fitting) == len(run.snapshots):
        return fitting
    subject = "they" if len(run.snapshots) > 1 else "it"
    takes = f"{subject} would take {total_bytes / 1e6:,.0f} MB, and at most {_most() / 1e6:,.0f} MB are held"
    remedy = "Whoever runs this explorer can raise max_snapshot_megabytes in explorer.toml."
    if not fitting:
        st.warning(
            f"The {count(len(run.snapshots), 'snapshot')} of this training are too large: {takes} here. {remedy}",
            icon=":material/memory:",
        )
        return None
    st.info(
        f"{len(fitting)} of {len(run.snapshots)} snapshots are shown: all together {takes} here. {remedy}",
        icon=":material/memory:",
    )
    return fitting


def series(snapshots):
    """The ``SnapshotSeries`` of some snapshots; None while it is read, with a progress bar on the page."""
    key = tuple((snapshot.step, str(snapshot.folder)) for snapshot in snapshots)
    stored = _store().get(key)
    if stored is not None:
        return stored
    disable_keras_reset()
    label = f"Reading {count(len(snapshots), 'snapshot')}"
    if _is_small(snapshots):
        with st.spinner(f"{label} …", show_time=True):
            return _read(key, snapshots)
    if jobs.result("time_lapse_series", key, label, lambda progress: bool(_read(key, snapshots, progress))) is None:
        return None
    stored = _store().get(key)
    if stored is None:  # it was dropped since: the visitor was away, and other values needed its room
        jobs.drop("time_lapse_series")
        state.rerun()
    return stored


def snapshot_traces(snapshot_series, snapshots, key, *asked):
    """The result of a ``SnapshotSeries``' method ``snapshot_traces``, cached; None while the snapshots run.

    Args:
        snapshot_series: ``SnapshotSeries`` of ``snapshots``.
        key: the inputs; with another key the snapshots run again.
        asked: arguments of the method.
    """
    label = "Running every snapshot"
    if _is_small(snapshots):
        with st.spinner(f"{label} …"):
            return cached("time_lapse", key, lambda: snapshot_series.snapshot_traces(*asked))
    return jobs.result(
        "time_lapse", key, label, lambda progress: snapshot_series.snapshot_traces(*asked, progress=progress)
    )


def _is_small(snapshots):
    from bert_tf.explain.models.snapshot_series import snapshot_bytes

    return snapshot_bytes(snapshots) <= _SMALL


def _read(key, snapshots, progress=None):
    """Read a series and store it.

    One series is read at a time, for all visitors: two at the same time could take twice the bound.
    """
    from bert_tf.explain.models.snapshot_series import SnapshotSeries, snapshot_bytes

    while not _READING.acquire(timeout=0.2):
        report(progress, 0, 0)
    try:
        stored = _store().get(key)
        if stored is None:  # no other visitor has read it in the meantime
            # Make room first, so that the old and the new series are never in memory together.
            with memory_budget().room(snapshot_bytes(snapshots)):
                stored = SnapshotSeries(snapshots, progress)
            _store().put(key, stored)
        return stored
    finally:
        _READING.release()
