"""From a row of a table to a page that shows it."""

import dataclasses
import urllib.parse

import streamlit as st

from ui.session import (
    directional_models,
    runs,
    state,
    task_models,
)
from ui.session.model_store import installed
from ui.shell.view import (
    PAGES,
    MaskPosition,
    left_out,
    to_params,
)
from ui.widgets import comparison

#: Pages that show the view's texts, whatever is installed.
_PAGES = (
    "predict",
    "attention",
    "modelview",
    "neuron",
    "methods",
    "heads",
    "lens",
    "ablation",
    "contributions",
    "saliency",
    "patching",
    "whatif",
    "inputsum",
    "neighbours",
    "factors",
    "compare",
    "cka",
    "architecture",
)


def _more_pages():
    """Pages that show the view's texts where the models or trainings they need are here."""
    here = {
        "tasks": task_models.names,
        "finetuned": task_models.pairs,
        "timelapse": runs.snapshots,
        "oneway": lambda: len(directional_models.comparable_models()) == len(directional_models.DIRECTIONS),
        "electra": lambda: any("replaced" in (info.heads or ()) for info in installed()),
    }
    return [page for page, found in here.items() if found()]


def row_view(view, row, places):
    """The view of one row.

    Args:
        view: ``View``. row: ``bert_tf.explain.Row``. places: what was hidden, as ``hidden_places`` names it.
    """
    mask_positions = tuple(sorted(MaskPosition(*place) for place in places))
    return dataclasses.replace(view, a=row.text_a, b=row.text_b or "", masks=mask_positions, start=0)


def _opened(view, page, agreed):
    """The view of a row on a page, with the settings that make the page read the view's texts."""
    if page == "cka":
        view = view.with_setting("cka.source", "view")
    if page == "compare" and agreed:  # the two models the row was read by, not what was compared before
        view = comparison.with_compared_models(view, *comparison.compared_models(view, "agreement"))
    if page == "tasks" and view.model in task_models.names():  # the model that the page before this one asked
        view = view.with_setting("tasks.model", view.model)
    return dataclasses.replace(view, page=page)


def open_row(key, row, places, first="predict"):
    """Widgets that open a row in any page that shows texts.

    Args:
        key: of the widgets. row, places: as ``row_view`` takes them. first: the page that is offered first.
    """
    pages = [name for name in (first, *_PAGES, *_more_pages()) if name in PAGES]
    pages = list(dict.fromkeys(pages))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        page = st.selectbox(
            f"Open row {row.number:,} in",
            pages,
            format_func=lambda name: PAGES[name][1],
            key=f"{key}_page",
            width=220,
        )
        wanted = _opened(row_view(state.view(), row, places), page, first == "compare")
        st.button(
            "Open here", icon=":material/open_in_full:", key=f"{key}_go", on_click=state.replace_view, args=(wanted,)
        )
        link = "?" + urllib.parse.urlencode(to_params(wanted, state.limits()))
        too_long = bool(left_out(wanted, state.limits()))
        st.link_button(
            "In a new tab",
            link,
            icon=":material/open_in_new:",
            type="tertiary",
            disabled=too_long,
            help="This row is too long for a link: open it here." if too_long else None,
        )
