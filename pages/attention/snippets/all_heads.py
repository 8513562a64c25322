"""The Python code for what the page all heads shows."""

import dataclasses

from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about

_WEIGHTS = """\
for layer, head in {heads}:  # counted from 0
    weights = trace.attentions[layer, head]  # [tokens, tokens]: row a token that looks, column one looked at
    for row in selection.rows:
        seen = [(trace.tokens[at], weights[row, at].round(3)) for at in selection.columns{least}]
        print(trace.tokens[row], seen)"""


def snippet(view, shared, trace, heads, drawn, least=0.0, words=None):
    """The weights of the open heads.

    Args:
        heads: pairs (layer, head). least: weights below are left out.
        drawn: dict from a value of the view's ``selection`` to the ``Selection`` that is drawn of it.
        words: the trace of words that is drawn in the place of ``trace``; None for none.
    """
    cached = f" if weights[row, at] >= {least}" if least else ""
    body = _WEIGHTS.format(heads=list(heads), least=cached)
    imports, parts = ["from bert_tf.plots import select"], []
    for way, detail in drawn.items():
        parts += [drawn_tokens(dataclasses.replace(view, selection=way), words or trace, detail), body]
    if words:
        imports.append("from bert_tf.explain import word_trace")
        parts.insert(0, "trace = word_trace(trace)  # words in the place of tokens")
    return about(view, shared, trace, imports, *parts)
