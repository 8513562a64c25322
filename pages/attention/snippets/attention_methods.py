"""The lines of Python that do what the page attention methods shows."""

from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about

_METHODS = """\
found = token_attention(bert, trace, layer={layer}, position={position}, head={head}{flow})
for at in shown.columns:
    print(trace.tokens[at], {{name: values[at].round(3) for name, values in found.methods.items()}})"""


def snippet(view, shared, trace, position, head, flow, detail):
    """One token's attention by every method; flow: whether the page works it out."""
    imports = ["from bert_tf.explain import token_attention", "from bert_tf.plots import select"]
    flow = ", flow=True" if flow else ""
    body = _METHODS.format(layer=view.layer, position=position, head=head, flow=flow)
    return about(view, shared, trace, imports, drawn_tokens(view, trace, detail), body)
