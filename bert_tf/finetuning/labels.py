"""Entity labels: the schemes BIO, BIOES and IOB1, all read into BIO.

Source: Ramshaw and Marcus 1995 (IOB1); Tjong Kim Sang and Veenstra 1999 (BIO, there IOB2, and the others).
"""

import re

OUTSIDE = "O"
#: In BIOES some write L(ast) for E and U(nit) or W for S.
_PREFIXED = re.compile(r"([BIESLUW])-(.+)", re.DOTALL)


def is_entity_scheme(labels):
    """Whether labels mark entities: each "O" or a prefix with a type, and not all of them "O".

    Args:
        labels: iterable of distinct or repeated strings.
    """
    found = set(labels) - {OUTSIDE}
    return bool(found) and all(_PREFIXED.fullmatch(label) for label in found)


def to_bio(labels):
    """Labels of one sentence in BIO, from BIO, BIOES (or BILOU) or IOB1.

    An "I-" that nothing of its type goes before begins an entity, as IOB1 means it and as the CoNLL
    scorer reads it in faulty BIO.

    Args:
        labels: strings of `is_entity_scheme`.
    Returns:
        list of strings: "O", "B-TYPE", "I-TYPE".
    """
    result, before, closed = [], None, True
    for label in labels:
        match = _PREFIXED.fullmatch(label)
        if match is None:
            result.append(OUTSIDE)
            before, closed = None, True
            continue
        prefix, kind = match.groups()
        starts = prefix in "BSUW" or closed or kind != before
        result.append(f"{'B' if starts else 'I'}-{kind}")
        before, closed = kind, prefix in "ESLUW"
    return result


def entities(labels):
    """The entities of a sentence labelled in BIO.

    Args:
        labels: strings as `to_bio` gives them; a stray "I-" begins an entity.
    Returns:
        list of (type, first word, last word + 1).
    """
    found, start = [], None
    bio = to_bio(labels)
    for position, label in enumerate([*bio, OUTSIDE]):
        if start is not None and not label.startswith("I-"):
            found.append((bio[start][2:], start, position))
            start = None
        if label.startswith("B-"):
            start = position
    return found


def label_list(sentences):
    """The labels to learn, "O" first, then by name; with each "B-TYPE" its "I-TYPE" too.

    Args:
        sentences: iterable of label sequences, entity labels already in BIO.
    Returns:
        tuple of strings.
    """
    found = {label for labels in sentences for label in labels}
    if is_entity_scheme(found):
        kinds = sorted({label[2:] for label in found - {OUTSIDE}})
        return (OUTSIDE, *(f"{prefix}-{kind}" for kind in kinds for prefix in "BI"))
    return tuple(sorted(found))
