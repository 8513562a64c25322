"""Entity labels: reads the schemes BIO, BIOES and IOB1 and converts them to BIO.

Source: Ramshaw and Marcus 1995 (IOB1); Tjong Kim Sang and Veenstra 1999 (BIO, there IOB2, and the others).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


OUTSIDE = "O"
#: Variants of BIOES have L (last) for E, and U (unit) or W for S.
_PREFIXED = re.compile(r"([BIESLUW])-(.+)", re.DOTALL)


def composed(label: str) -> str:
    """The label in Unicode's composed form (NFC): an accent in a character of its own makes no other label."""
    return unicodedata.normalize("NFC", label)


def is_entity_scheme(labels: Iterable[str]) -> bool:
    """Whether labels mark entities: each is "O" or a prefix with a type, and at least one is not "O".

    Args:
        labels: iterable of str, with or without repetitions.

    Returns: bool.
    """
    entity_labels = set(labels) - {OUTSIDE}
    return bool(entity_labels) and all(_PREFIXED.fullmatch(label) for label in entity_labels)


def to_bio(labels: Iterable[str]) -> list[str]:
    """Converts the labels of one sentence from BIO, BIOES (or BILOU) or IOB1 to BIO.

    An "I-" without an entity of its type before it starts an entity, as in IOB1, and as the CoNLL scorer reads faulty
    BIO.

    Args:
        labels: iterable of str, for which `is_entity_scheme` is true.

    Returns: list of str: "O", "B-TYPE" or "I-TYPE".
    """
    result, previous_type, closed = [], None, True
    for label in labels:
        match = _PREFIXED.fullmatch(label)
        if match is None:
            result.append(OUTSIDE)
            previous_type, closed = None, True
            continue
        prefix, entity_type = match.groups()
        starts = prefix in "BSUW" or closed or entity_type != previous_type
        result.append(f"{'B' if starts else 'I'}-{entity_type}")
        previous_type, closed = entity_type, prefix in "ESLUW"
    return result


def entities(labels: Sequence[str]) -> list[tuple[str, int, int]]:
    """The entities of a sentence with BIO labels.

    Args:
        labels: list of str from `to_bio`; an "I-" without an entity before it starts one.

    Returns: list of (type, first word, last word + 1).
    """
    spans, start = [], None
    bio = to_bio(labels)
    for position, label in enumerate([*bio, OUTSIDE]):
        if start is not None and not label.startswith("I-"):
            spans.append((bio[start][2:], start, position))
            start = None
        if label.startswith("B-"):
            start = position
    return spans


def label_list(sentences: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The labels to learn: "O" first, then sorted by name, with both "B-TYPE" and "I-TYPE" of every entity type.

    Args:
        sentences: iterable of label sequences; entity labels are in BIO.

    Returns: tuple of str.
    """
    labels = {label for sentence_labels in sentences for label in sentence_labels}
    if is_entity_scheme(labels):
        types = sorted({label[2:] for label in labels - {OUTSIDE}})
        return (OUTSIDE, *(f"{prefix}-{entity_type}" for entity_type in types for prefix in "BI"))
    return tuple(sorted(labels))
