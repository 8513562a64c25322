"""The frame around every page: style, icon, links between the pages."""

import dataclasses
import importlib
import urllib.parse

import streamlit as st

from ui import components, state
from ui.limits import ROOT
from ui.view import PAGES, to_params

ICON = str(ROOT / "assets" / "icon.png")


def style():
    """Put the project's style sheet into the page."""
    st.html(ROOT / "assets" / "style.css")


def navigation():
    """Links to all pages, each with the view as it stands: the groups, and below them the pages of this one."""
    view = state.view()
    group = PAGES[view.page][0]
    first = {}
    for name, (title, _) in PAGES.items():
        first.setdefault(title, name)
    within = [name for name, (title, _) in PAGES.items() if title == group]

    def link(name, title, current):
        params = to_params(dataclasses.replace(view, page=name), state.limits())
        return {"name": name, "title": title, "href": "?" + urllib.parse.urlencode(params), "current": current}

    def go(name):
        if name in PAGES:
            state.change(page=name)

    groups = [link(name, title, title == group) for title, name in first.items()]
    pages = [link(name, PAGES[name][1], name == view.page) for name in within] if len(within) > 1 else []
    components.nav("c_nav", groups, pages, is_dark(), go)


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
