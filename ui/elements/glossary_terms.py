"""The browser components of the glossary: its list, and the meanings of terms in a page's own sentences."""

import dataclasses

from ui.elements.component_registry import register
from ui.samples.glossary import TERMS

_GLOSSARY, _TERMS = register("glossary"), register("terms")
_ALL = [dataclasses.asdict(term) for term in TERMS]  # once: every page draws them in every run


def glossary(key, terms, on_go):
    """Draw the list of terms with a field that narrows it.

    Args:
        key: of the component.
        terms: dicts with "name", "others", "text", "page", and the page's "title" and "href".
        on_go: callable (page's name), called when the link of a term is pressed.
    """
    pages = {term["page"] for term in terms}

    def pressed(value):
        if isinstance(value, str) and value in pages:
            on_go(value)

    _GLOSSARY(key=key, data={"terms": terms}, presses={"go": pressed})


def mark_terms(key):
    """Underline the first use of each term in the page's sentences, and tell its meaning at the pointer or keyboard."""
    _TERMS(key=key, data={"terms": _ALL})
