"""Open a row of a data set on another page."""

import dataclasses
import urllib.parse

import streamlit as st

from ui.session import state
from ui.shell import catalogue
from ui.shell.view import MaskPosition, left_out, to_params


def row_view(view, row, places):
    """The view with the texts and masks of one row.

    Args:
        view: ``View``. row: ``bert_tf.explain.Row``. places: the masked words, as ``hidden_places`` returns them.
    """
    mask_positions = tuple(sorted(MaskPosition(*place) for place in places))
    return dataclasses.replace(view, a=row.text_a, b=row.text_b or "", masks=mask_positions, start=0)


def open_row(key, row, places, first="predict"):
    """Draw widgets that open a row on any page that shows texts.

    Args:
        key: of the widgets. row, places: see ``row_view``. first: the page at the top of the list.
    """
    pages = catalogue.pages()
    names = [name for name, page in pages.items() if page.opens_rows and page.is_available()]
    names.sort(key=lambda name: name != first)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.selectbox(
            f"Open row {row.number:,} in",
            names,
            format_func=lambda name: pages[name].title,
            key=f"{key}_page",
            width=220,
        )
        target_view = pages[name].from_row(row_view(state.view(), row, places))
        target_view = dataclasses.replace(target_view, page=name)
        st.button(
            "Open here",
            icon=":material/open_in_full:",
            key=f"{key}_go",
            on_click=state.replace_view,
            args=(target_view,),
        )
        link = "?" + urllib.parse.urlencode(to_params(target_view, state.limits()))
        too_long = bool(left_out(target_view, state.limits()))
        st.link_button(
            "In a new tab",
            link,
            icon=":material/open_in_new:",
            type="tertiary",
            disabled=too_long,
            help="This row is too long for a link: open it here." if too_long else None,
        )
