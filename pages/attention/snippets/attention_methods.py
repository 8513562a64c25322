"""The Python code for what the page attention methods shows."""

from bert_tf.analyses import Call
from bert_tf.explain import token_attention
from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about

_METHODS = """\
result = {call}
for at in shown.columns:
    print(trace.tokens[at], {{name: values[at].round(3) for name, values in result.methods.items()}})"""


def snippet(view, shared, trace, position, head, flow, detail):
    """One token's attention by every method; flow: whether the page works it out."""
    call = Call.of(token_attention, layer=view.layer, position=position, head=head, flow=flow)
    imports = [*call.imports(), "from bert_tf.plots import select"]
    body = _METHODS.format(call=call.python("bert", "trace"))
    return about(view, shared, trace, imports, drawn_tokens(view, trace, detail), body)
