"""The offer of the released Base and Large, which are downloaded once."""

import streamlit as st

from ui.session import downloads, model_store
from ui.widgets import comparison


def draw(where):
    """Draw a button for each of ``comparison.RECOMMENDED`` that is not installed, if visitors may download.

    Args:
        where: str, a part of the buttons' keys: the page's name.
    """
    if not downloads.downloads_allowed():
        return
    here = {info.name for info in model_store.installed()}
    missing = [
        info for info in model_store.catalogue() if info.name in comparison.RECOMMENDED and info.name not in here
    ]
    if not missing:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        for info in missing:
            downloads.download_model_button(info, where)
        st.caption("The released BERT Base and Large, from the Hugging Face hub; downloaded once.", width="content")
