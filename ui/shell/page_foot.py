"""The foot of a page: the menus "Save" and "Copy as Python" of what the page has computed."""

import streamlit as st

from ui.shell import error_messages, snippets
from ui.widgets import export

MENUS = ("w_save_menu", "w_code_menu")


def begin():
    """Forget what a run that was cut off has left. Call it before the page is drawn."""
    export.take()
    snippets.take()


def draw():
    """Draw the menus of what the page has saved and given since `begin`, if there is anything."""
    saved, script = export.take(), snippets.take()
    if any(saved) or script is not None:
        _menus(saved, script)


@error_messages.fragment
def _menus(saved, script):
    """Draw the menus. An opened one runs this fragment alone: what is in it is made then, not in each run."""
    with st.container(key="page_foot", horizontal=True, gap="small"):
        export.draw(*saved, key=MENUS[0])
        snippets.draw(script, key=MENUS[1])
