"""A component that draws a text with labelled spans."""

from bert_tf.plots.theme import CATEGORIES
from ui.elements.component_registry import register
from ui.widgets.formatting import direction

_SPANS = register("spans")
#: The colours of the categories, and four more for tasks with many labels; further labels repeat the colours.
COLOURS = (*CATEGORIES, "#8c6bb1", "#b8a12f", "#7f7f7f", "#4d4d9e")


def spans(key, parts, legend, hint):
    """Draw a text with labelled spans.

    Args:
        key: of the component.
        parts: dicts in reading order: ``text`` and, for a labelled span, ``kind`` (index of its colour),
            ``label`` ("" for none) and ``tip``.
        legend: dicts with ``kind``, ``label`` and ``note``.
        hint: shown while the pointer is on no span.
    """
    data = {"parts": parts, "direction": direction("".join(part["text"] for part in parts))}
    _SPANS(key=key, data={**data, "legend": legend, "hint": hint, "colours": list(COLOURS)})


def split_at_spans(text, places):
    """Cut a text at its labelled spans.

    Args:
        text: str. places: (start, end, kind, label, tip) in characters; of two that overlap the first is kept.

    Returns:
        list of dicts, the ``parts`` of ``spans``.
    """
    parts, reached = [], 0
    for start, end, kind, label, tip in sorted(places):
        if start < reached or end <= start:
            continue
        if start > reached:
            parts.append({"text": text[reached:start]})
        parts.append({"text": text[start:end], "kind": kind, "label": label, "tip": tip})
        reached = end
    return [*parts, {"text": text[reached:]}] if reached < len(text) else parts
