"""The Python code for what the page attention methods shows."""

from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about

_METHODS = """\
result = {call}
for at in selection.columns:
    print(trace.tokens[at], {{name: values[at].round(3) for name, values in result.methods.items()}})"""


def snippet(view, shared, trace, call, detail):
    """One token's attention by every method.

    Args:
        call: ``Call`` of `token_attention`. detail: the ``Selection`` that is drawn.
    """
    imports = [*call.imports(), "from bert_tf.plots import select"]
    body = _METHODS.format(call=call.python("bert", "trace"))
    return about(view, shared, trace, imports, drawn_tokens(view, trace, detail), body)
