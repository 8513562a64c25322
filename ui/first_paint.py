"""What a visitor sees before the page: the style, and a title while the modules of the pages are imported.

It follows the frame in the HTML page (`ui/server/first_frame.py`).

The file imports none of these modules itself.
"""

import sys

import streamlit as st

from ui.shell.limits import ROOT

#: The name of the explorer.
TITLE = "BERT explorer"
#: The icon of the browser tab.
ICON = str(ROOT / "assets" / "icon.png")
#: Grey shapes in the place of what is computed.
SKELETON = '<div class="skeleton" aria-hidden="true"><i></i><i></i><i></i><i></i></div>'
_CATALOGUE = "ui.shell.catalogue"  # its function `pages` imports all pages


def style():
    """Put the project's style sheet into the page."""
    st.html(ROOT / "assets" / "style.css")


def draw():
    """Draw a title and what loads if the pages are not imported yet.

    Returns:
        the place of it, to be emptied when the page draws its own title. Every run has the place, so that the elements
        after it keep their positions.
    """
    place = st.empty()
    if not _pages_are_imported():
        with place.container():
            st.title(TITLE, anchor=False)
            st.caption("The pages are being loaded: only the first visit after the start of the server waits for it.")
            st.html(SKELETON)
    return place


def _pages_are_imported():
    pages = getattr(sys.modules.get(_CATALOGUE), "pages", None)
    return pages is not None and pages.cache_info().currsize > 0
