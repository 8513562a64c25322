"""Glossary: the terms of the explorer, each with the page where it is seen."""

import dataclasses
import urllib.parse

from ui.elements.glossary_terms import glossary
from ui.samples.glossary import TERMS
from ui.session import state
from ui.shell import catalogue, frame
from ui.shell.page import Page, Press
from ui.shell.view import to_params

PAGE = Page(
    name="glossary",
    group="Learn",
    order=8,
    title="Glossary",
    question="What the terms mean",
    terms="definitions dictionary words",
    summary=(
        "the terms of the explorer from A to Z, each in one or two sentences with its plain names and the page where "
        "it is seen; narrowed while a word is typed. On every page the first use of a term tells its meaning"
    ),
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
)


def page():
    glossary("c_glossary", [_linked(term) for term in TERMS], lambda name: state.replace_view(frame.view_of(name)))


def _linked(term):
    params = to_params(frame.view_of(term.page), state.limits())
    title = catalogue.pages()[term.page].full_title
    return {**dataclasses.asdict(term), "title": title, "href": "?" + urllib.parse.urlencode(params)}
