"""The frame around every page: links to the pages, title."""

import dataclasses
import functools
import urllib.parse

import streamlit as st

from ui.elements import components, glossary_terms
from ui.first_paint import TITLE
from ui.samples.examples import FIRST
from ui.samples.glossary import TERMS
from ui.session import state, task_models
from ui.shell import aliases, catalogue
from ui.shell.page import SECTIONS
from ui.shell.view import LONGEST_SETTING, left_out, to_params
from ui.widgets.formatting import replaced

_TEXTS = {"a": "text A", "b": "text B"}


def current_page():
    """The `Page` that the view names."""
    return catalogue.pages()[state.view().page]


def open_example():
    """Put the example of the open page, or of its model, into the view if neither link nor visitor has given a text."""
    if not {"a", "b"} & st.query_params.keys():
        example = current_page().example or FIRST
        state.correct_view(**_with_example(state.view(), FIRST, example))
        if current_page().reads_texts and state.view().model in task_models.names():
            suited = task_models.with_example(state.view(), example)
            state.correct_view(a=suited.a, b=suited.b, masks=suited.masks)


def view_of(name):
    """The view with another page open.

    If the text is still the example with which the open page began, it becomes the other page's example.

    Args:
        name: str. Of the page to open.
    """
    view, pages = state.view(), catalogue.pages()
    before, after = (pages[page].example or FIRST for page in (view.page, name))
    return dataclasses.replace(view, page=name, **_with_example(view, before, after))


def _with_example(view, before, after):
    """The fields of the view that change if its text and masks are the example ``before``: those of ``after``."""
    if before == after or (view.a, view.b, view.masks) != (before.a, before.b, before.masks):
        return {}
    return {"a": after.a, "b": after.b, "masks": after.masks, "start": 0}


def navigation():
    """Draw the links to all pages into the sidebar; each link has the current view."""
    view, pages, limits = state.view(), catalogue.pages(), state.limits()
    params = {name: to_params(view_of(name), limits) for name in pages}
    # The browser has what all links share in its address bar. Without it this stays the same while words are masked:
    # Streamlit sends it once.
    shared = set.intersection(*(set(one.items()) for one in params.values()))

    def link(page):
        own = {name: value for name, value in params[page.name].items() if (name, value) not in shared}
        return {
            "name": page.name,
            "title": page.title,
            "question": page.question,
            "terms": _search_terms()[page.name],
            "params": own,
        }

    def go(name):
        if name in pages:
            state.replace_view(view_of(name))

    sections = [
        {"title": title, "pages": [link(page) for page in pages.values() if page.group in groups]}
        for title, groups in SECTIONS.items()
    ]
    with st.sidebar:
        components.nav("c_nav", sections, view.page, state.is_dark(), go)


@functools.cache
def _search_terms():
    """Name of a page -> the words by which the search shows it: its own, and the terms of the glossary seen there."""
    terms = {name: [page.terms] for name, page in catalogue.pages().items()}
    for term in TERMS:
        terms[term.page] += [term.name, *term.others]
    return {name: " ".join(dict.fromkeys(" ".join(words).lower().split())) for name, words in terms.items()}


def window_title():
    """The title of the browser's window: it tells tabs, bookmarks and steps of the history apart."""
    return f"{current_page().title} · {TITLE}"


def draw_title():
    """Draw the title and the question of the page that the view names."""
    page = current_page()
    with st.container(key="page_title"):
        st.title(page.title, anchor=False)
        st.markdown(page.question)
    if missing := state.page_not_found():
        st.warning(replaced("page", missing, page.title))


def draw_page():
    """Draw the contents of the page that the view names."""
    page = current_page()
    catalogue.draw(page.name)
    # The page of the glossary has the terms themselves.
    if page.name != "glossary":
        glossary_terms.mark_terms("c_terms")


def long_link_note():
    """Draw a note about texts and settings that are too long for the address; a link opens the page without them."""
    view, page = state.view(), current_page()
    missing = []
    for name, length in left_out(view, state.limits()):
        setting = name.removeprefix(f"{page.name}.")
        label = _TEXTS.get(name) or page.long_settings.get(setting, "a choice on this page")
        if name not in _TEXTS or page.shows_texts(view):
            missing.append(f"{label} ({length:,} characters)")
    if missing:
        st.caption(
            f"The address of this page cannot hold {' and '.join(missing)}: a link opens the page without it. A link "
            f"holds at most {state.limits().max_link_characters:,} characters in all, and {LONGEST_SETTING:,} of a "
            "text that is typed for this page alone.",
            help="An accented, Hebrew or Arabic letter counts as six characters, a Chinese one as nine.",
        )


def link_to(view):
    """The whole address of a view: a link for other visitors."""
    address = urllib.parse.urlsplit(st.context.url or "")
    origin = f"{address.scheme}://{address.netloc}{address.path}" if address.netloc else ""
    return f"{origin}?{urllib.parse.urlencode(to_params(view, state.limits()))}"


def redirects(front):
    """``st.Page``s for the addresses /name of all current and old names of pages; each opens ``front``.

    Streamlit sends the list to the browser in every run. So the list has only the address in the visitor's browser; if
    this is not known, the list has all addresses.
    """
    addresses = {name: name for name in catalogue.pages()} | aliases.PAGES
    if url := st.context.url:
        last = urllib.parse.urlsplit(url).path.rstrip("/").rpartition("/")[2]
        addresses = {address: name for address, name in addresses.items() if address == last}
    return [_redirect(address, name, front) for address, name in addresses.items()]


def _redirect(address, name, front):
    def enter():
        state.replace_view(view_of(name))
        st.switch_page(front)

    enter.__name__ = f"enter_{address}"
    return st.Page(enter, title=catalogue.pages()[name].title, url_path=address)
