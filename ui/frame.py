"""The frame around every page: style, icon, links between the pages."""

import dataclasses
import importlib
import urllib.parse

import streamlit as st

from ui import components, state
from ui.limits import ROOT
from ui.view import PAGES, to_params

ICON = str(ROOT / "assets" / "icon.png")
TITLES = dict(zip(PAGES, ("Predict", "Attention", "Compare", "Models")))


def style():
    """Put the project's style sheet into the page."""
    st.html(ROOT / "assets" / "style.css")


def navigation():
    """Links to all pages, each with the view as it stands."""
    view = state.view()

    def link(name):
        params = to_params(dataclasses.replace(view, page=name), state.limits())
        return "?" + urllib.parse.urlencode(params)

    def go(name):
        if name in TITLES:
            state.change(page=name)

    components.nav(
        "c_nav",
        [
            {"name": name, "title": title, "href": link(name), "current": name == view.page}
            for name, title in TITLES.items()
        ],
        is_dark(),
        go,
    )


def is_dark():
    """Whether the visitor's page is dark."""
    return st.context.theme.type == "dark"


def current_page():
    """The function that draws the view's page."""
    return importlib.import_module(f"pages.{state.view().page}").page


def door(name, front):
    """A page at the address /name that hands on to the front page, opened at ``name``."""

    def enter():
        state.change(page=name)
        st.switch_page(front)

    enter.__name__ = f"enter_{name}"
    return enter
