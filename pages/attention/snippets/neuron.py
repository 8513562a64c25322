"""The Python code for what the page neuron shows."""

from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about

_NEURON = """\
result = {call}
query, key = result.position, {key}  # {names}
print((result.queries[query] * result.keys[key]).round(3))  # component by component
scores, weights = result.scores, result.weights
for at in selection.columns:
    print(trace.tokens[at], scores[at].round(2), weights[at].round(3))"""


def snippet(view, shared, trace, call, key, detail):
    """From the query and the keys to the weights of one token.

    Args:
        call: ``Call`` of `neuron_view`. key: position of the open key. detail: the ``Selection`` that is drawn.
    """
    names = f"{trace.tokens[call['position']]} looks at {trace.tokens[key]}"
    body = _NEURON.format(call=call.python("bert", "trace"), key=key, names=names)
    imports = [*call.imports(), "from bert_tf.plots import select"]
    return about(view, shared, trace, imports, drawn_tokens(view, trace, detail), body)
