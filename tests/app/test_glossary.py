"""Glossary: its terms and their pages, and the meanings that every page gets."""

import collections

import pytest

from tests.app.page_reading import component, page_text, param
from ui.samples.glossary import TERMS
from ui.shell.catalogue import pages


def test_the_glossary_has_each_term_once_in_the_order_of_the_alphabet():
    assert len(TERMS) >= 60
    names = [term.name for term in TERMS]
    assert names == sorted(names, key=str.casefold)
    forms = collections.Counter(form.casefold() for term in TERMS for form in (term.name, *term.others))
    assert [form for form, times in forms.items() if times > 1] == []


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_is_told_shortly_and_leads_to_a_page(term):
    assert term.page in pages()
    assert term.text.endswith(".") and len(term.text) <= 130 and term.text.count(". ") <= 1


def test_the_page_lists_them_with_links_that_keep_the_view(open_app):
    app = open_app(page="glossary", a="The bunny ate.")
    assert not app.exception and not app.error, page_text(app)
    listed = component(app, "glossary")["terms"]
    assert [term["name"] for term in listed] == [term.name for term in TERMS]
    assert all(
        f"page={term['page']}" in term["href"] and "bunny" in term["href"]
        for term in listed
        if term["page"] != "predict"
    )
    assert component(app, "terms") is None and param(app, "page") == "glossary"


@pytest.mark.parametrize("page", ["predict", "guide", "models"])
def test_every_other_page_gets_the_meanings(open_app, page):
    app = open_app(page=page)
    assert len(component(app, "terms")["terms"]) == len(TERMS)
