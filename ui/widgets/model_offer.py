"""The offer of the released Base and Large, which are downloaded once."""

import streamlit as st

from ui.session import downloads, model_store
from ui.widgets import comparison


def missing():
    """The ``ModelInfo``s of ``comparison.RECOMMENDED`` that are not installed and that visitors may download."""
    if not downloads.downloads_allowed():
        return []
    return [info for info in model_store.catalogue() if info.name in comparison.RECOMMENDED and not info.installed]


def draw(where):
    """Draw a button for each of `missing`.

    Args:
        where: str, a part of the buttons' keys: the page's name.
    """
    offered = missing()
    if not offered:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        for info in offered:
            downloads.download_model_button(info, where)
        st.caption("The released BERT Base and Large, from the Hugging Face hub; downloaded once.", width="content")
