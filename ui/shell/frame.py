"""The frame around every page: style, icon, links between the pages."""

import dataclasses
import importlib
import urllib.parse

import streamlit as st

from ui.session import state
from ui.shell.limits import ROOT
from ui.shell.view import (
    LONGEST_SETTING,
    PAGES,
    left_out,
    to_params,
)
from ui.widgets import components

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
            state.change_view(page=name)

    groups = [link(name, title, title == group) for title, name in first.items()]
    pages = [link(name, PAGES[name][1], name == view.page) for name in within] if len(within) > 1 else []
    components.nav("c_nav", groups, pages, is_dark(), go)


#: Pages that read neither text A nor text B.
_TEXTLESS = ("meaning", "cka", "agreement", "concepts", "newtask", "training", "dataset", "family", "guide", "models")
_NAMES = {
    "a": "text A",
    "b": "text B",
    "compare.a": "the second text A",
    "compare.b": "the second text B",
    "patching.a": "text A of the other input",
    "patching.b": "text B of the other input",
    "meaning.lines": "the sentences",
    "agreement.lines": "the typed lines",
    "concepts.lines": "the typed lines",
    "dataset.subsets": "the subsets",
    "concepts.own": "the sentences with the concept",
    "concepts.others": "the others to compare with",
    "cka.lines": "the typed lines",
    "ablation.off": "what is switched off",
}


def long_link_note():
    """Say what is too long for the address, where something is: the link opens without it."""
    view = state.view()
    of_view = view.page == "cka" and view.setting("cka.source") == "view"
    missing = [
        f"{_NAMES.get(name, 'a choice on this page')} ({length:,} characters)"
        for name, length in left_out(view, state.limits())
        if name not in "ab" or view.page not in _TEXTLESS or of_view
    ]
    if missing:
        st.caption(
            f"The address of this page cannot hold {' and '.join(missing)}: opened as a link, that is empty. A link "
            f"holds {state.limits().max_link_characters:,} characters in all, where an accented, Hebrew or Arabic letter "
            f"counts as six and a Chinese one as nine, and {LONGEST_SETTING:,} of what is typed for one page alone."
        )


def is_dark():
    """Whether the visitor's page is dark."""
    return st.context.theme.type == "dark"


#: The module of each page, beneath `pages`.
_MODULES = {
    "predict": "predict.predict",
    "attention": "attention.all_heads",
    "modelview": "attention.model_view",
    "neuron": "attention.neuron",
    "methods": "attention.attention_methods",
    "heads": "attention.head_profiles",
    "lens": "explain.logit_lens",
    "ablation": "explain.ablation",
    "contributions": "explain.contributions",
    "saliency": "explain.saliency",
    "patching": "explain.patching",
    "concepts": "explain.tcav",
    "whatif": "explain.counterfactuals",
    "inputsum": "representations.input_embeddings",
    "meaning": "representations.word_senses",
    "neighbours": "representations.nearest_words",
    "factors": "representations.factors",
    "compare": "compare.side_by_side",
    "cka": "compare.layer_similarity",
    "agreement": "compare.agreement",
    "tasks": "tasks.task_predictions",
    "finetuned": "tasks.before_after",
    "newtask": "tasks.fine_tune",
    "training": "training.curves",
    "timelapse": "training.time_lapse",
    "dataset": "data.dataset",
    "architecture": "learn.architecture",
    "oneway": "learn.directionality",
    "electra": "learn.replaced_tokens",
    "family": "learn.architectures",
    "guide": "learn.guide",
    "models": "models.models",
}


def current_page():
    """The function that draws the view's page."""
    return importlib.import_module(f"pages.{_MODULES[state.view().page]}").page


def redirect_page(name, front):
    """A page at the address /name that hands on to the front page, opened at ``name``."""

    def enter():
        state.change_view(page=name)
        st.switch_page(front)

    enter.__name__ = f"enter_{name}"
    return enter
