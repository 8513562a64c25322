"""The Python code for what the page model view shows."""

from pages.attention.snippets.all_heads import snippet as one_head
from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about

_STRONGEST = """\
for layer, heads in enumerate(trace.attentions):  # [layers, heads, tokens, tokens]
    for head, weights in enumerate(heads):
        part = weights[np.ix_(selection.rows, selection.columns)]  # the map of this head
        row, column = np.unravel_index(part.argmax(), part.shape)
        looks, at = trace.tokens[selection.rows[row]], trace.tokens[selection.columns[column]]
        print(layer, head, f"{{looks}} looks most at {{at}}: {{part[row, column]:.3f}}")"""


def snippet(view, shared, trace, detail, zoomed, least=0.0):
    """The map of every head, or the weights of the one that is enlarged."""
    if zoomed:
        return one_head(view, shared, trace, [(view.layer, view.head)], {view.selection: detail}, least)
    imports = ("import numpy as np", "from bert_tf.plots import select")
    return about(view, shared, trace, imports, drawn_tokens(view, trace, detail), _STRONGEST.format())
