"""One of the explorer's own components: a text with labelled places in it."""

from bert_tf.plots.theme import CATEGORIES
from ui.elements.component_registry import register
from ui.widgets.formatting import direction

_SPANS = register("spans")
#: The categories' colours, and four more for schemes of many labels; beyond them colours come again.
COLOURS = (*CATEGORIES, "#8c6bb1", "#b8a12f", "#7f7f7f", "#4d4d9e")


def spans(key, parts, legend, hint):
    """Draw a text with labelled places.

    Args:
        parts: dicts in reading order: ``text`` and, for a labelled place, ``kind`` (index of its colour),
            ``label`` ("" for none) and ``tip``.
        legend: dicts with ``kind``, ``label`` and ``note``.
        hint: said while no place is pointed at.
    """
    runs = direction("".join(part["text"] for part in parts))
    _SPANS(key=key, data={"parts": parts, "direction": runs, "legend": legend, "hint": hint, "colours": list(COLOURS)})


def split_at_spans(text, places):
    """A text cut at labelled places.

    Args:
        text: str. places: (start, end, kind, label, tip) in characters; of two that overlap the first is kept.
    Returns:
        parts for ``spans``.
    """
    found, reached = [], 0
    for start, end, kind, label, tip in sorted(places):
        if start < reached or end <= start:
            continue
        if start > reached:
            found.append({"text": text[reached:start]})
        found.append({"text": text[start:end], "kind": kind, "label": label, "tip": tip})
        reached = end
    return [*found, {"text": text[reached:]}] if reached < len(text) else found
