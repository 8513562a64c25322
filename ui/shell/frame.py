"""The frame around every page: style, icon, links between the pages, title."""

import dataclasses
import urllib.parse

import streamlit as st

from ui.elements import components
from ui.session import state
from ui.session.state import is_dark
from ui.shell import aliases, catalogue
from ui.shell.limits import ROOT
from ui.shell.view import LONGEST_SETTING, left_out, to_params

ICON = str(ROOT / "assets" / "icon.png")
_TEXTS = {"a": "text A", "b": "text B"}


def style():
    """Put the project's style sheet into the page."""
    st.html(ROOT / "assets" / "style.css")


def current_page():
    """The `Page` that the view names."""
    return catalogue.pages()[state.view().page]


def navigation():
    """Links to all pages, each with the view as it stands: the groups, and below them the pages of this one."""
    view, pages = state.view(), catalogue.pages()
    groups = {}
    for page in pages.values():
        groups.setdefault(page.group, []).append(page)
    group = current_page().group

    def link(page, title, hint, current):
        params = to_params(dataclasses.replace(view, page=page.name), state.limits())
        href = "?" + urllib.parse.urlencode(params)
        return {"name": page.name, "title": title, "hint": hint, "href": href, "current": current}

    def go(name):
        if name in pages:
            state.change_view(page=name)

    first = [
        link(within[0], title, " · ".join(page.title for page in within), title == group)
        for title, within in groups.items()
    ]
    links = [link(page, page.title, page.question, page.name == view.page) for page in groups[group]]
    components.nav("c_nav", first, links if len(links) > 1 else [], is_dark(), go)


def draw_page():
    """The page that the view names: its title, the same in plain words, and what it shows."""
    page = current_page()
    st.title(page.title, anchor=False)
    with st.container(key="page_question"):
        st.markdown(page.question)
    catalogue.draw(page.name)


def long_link_note():
    """Say what is too long for the address, where something is: the link opens without it."""
    view, page = state.view(), current_page()
    missing = []
    for name, length in left_out(view, state.limits()):
        setting = name.removeprefix(f"{page.name}.")
        said = _TEXTS.get(name) or page.long_settings.get(setting, "a choice on this page")
        if name not in _TEXTS or page.shows_texts(view):
            missing.append(f"{said} ({length:,} characters)")
    if missing:
        st.caption(
            f"The address of this page cannot hold {' and '.join(missing)}: opened as a link, that is empty. A link "
            f"holds {state.limits().max_link_characters:,} characters in all, where an accented, Hebrew or Arabic "
            f"letter counts as six and a Chinese one as nine, and {LONGEST_SETTING:,} of what is typed for one page "
            "alone."
        )


def redirects(front):
    """The addresses /name of the pages, and those that they had before: each hands on to ``front``.

    Streamlit sends the list to the browser at every rerun, so only the address in the visitor's browser is in it;
    where that is not known, all are.
    """
    addresses = {name: name for name in catalogue.pages()} | aliases.PAGES
    if url := st.context.url:
        last = urllib.parse.urlsplit(url).path.rstrip("/").rpartition("/")[2]
        addresses = {address: name for address, name in addresses.items() if address == last}
    return [_redirect(address, name, front) for address, name in addresses.items()]


def _redirect(address, name, front):
    def enter():
        state.change_view(page=name)
        st.switch_page(front)

    enter.__name__ = f"enter_{address}"
    return st.Page(enter, title=catalogue.pages()[name].title, url_path=address)
