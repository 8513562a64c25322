"""Fetching a released model from a page, with its progress."""

import time

import streamlit as st

from ui import models, state
from ui.words import megabytes, plain

_STEP = 0.2  # seconds between two drawings of the bar


def get_button(info, where):
    """A button that fetches the model of ``info`` (a ``ModelInfo``), and what comes of it.

    Args:
        info: a released model that is not on this machine.
        where: makes the button's key unlike that of another place.
    """
    label = f"Get {info.name} ({megabytes(info.size_bytes)})"
    if st.button(label, icon=":material/download:", key=f"w_get_{where}_{info.name}"):
        _fetch(info)


def allowed():
    """Whether visitors may fetch models here."""
    return state.limits().download


def _fetch(info):
    from bert_tf.checkpoints import download

    bar = st.progress(0.0, text=f"Looking for {info.name} …")
    drawn = 0.0

    def progress(done, total):
        nonlocal drawn
        if time.monotonic() - drawn < _STEP and done < (total or 0):
            return
        drawn = time.monotonic()
        bar.progress(
            min(done / total, 1.0) if total else 0.0,
            text=f"{info.name}: {megabytes(done)} of {megabytes(total or info.size_bytes)}",
        )

    try:
        download(info.name, progress=progress)
    except (ValueError, OSError) as error:
        bar.empty()
        st.error(plain(str(error)), icon=":material/cloud_off:")
        return
    models.catalogue.clear()
    st.toast(f"{info.name} is here.", icon=":material/check:")
    state.rerun()
