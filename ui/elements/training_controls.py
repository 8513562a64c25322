"""What the pages of trainings share: the button that deletes one, and why one failed."""

import streamlit as st

from ui.session import state
from ui.widgets.formatting import escape_markdown


def delete_button(key, what, delete):
    """The button that deletes a training; it opens a second one, as nothing brings the training back.

    Args:
        key: of the second button. what: what is deleted, such as "model". delete: callable () that deletes it.
    """
    with st.popover("Delete", icon=":material/delete:", width="content"):
        st.markdown(f"The {what} is deleted for everybody who opens this explorer.")
        if st.button("Delete it", type="primary", key=key):
            delete()
            state.rerun()


def failure(name, problem, is_kept=False):
    """Why a training of this visitor failed.

    Args:
        name: of the training. problem: its error message; None draws nothing. is_kept: whether its files are.
    """
    if problem:
        kept = "What it saved before is kept." if is_kept else "Nothing of it is kept."
        st.error(
            f"The training {name} failed. {kept} {escape_markdown(problem)}",
            icon=":material/error:",
        )
