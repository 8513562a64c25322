"""The Python code for what the page neuron shows."""

from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about

_NEURON = """\
vectors = head_vectors(bert, trace, layer={layer}, head={head})
query, key = {query}, {key}  # {names}
print(vectors.products(query)[key].round(3))  # component by component
scores, weights = vectors.scores(query), vectors.weights(query)
for at in shown.columns:
    print(trace.tokens[at], scores[at].round(2), weights[at].round(3))"""


def snippet(view, shared, trace, query, key, detail):
    """From the query and the keys to the weights of one token."""
    names = f"{trace.tokens[query]} looks at {trace.tokens[key]}"
    body = _NEURON.format(layer=view.layer, head=view.head, query=query, key=key, names=names)
    imports = ("from bert_tf.explain import head_vectors", "from bert_tf.plots import select")
    return about(view, shared, trace, imports, drawn_tokens(view, trace, detail), body)
