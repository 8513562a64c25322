"""The Python code for what the page input embeddings shows."""

from ui.widgets.snippet_parts import about, span

_INPUTSUM = """\
result = embedding_parts(bert, trace)
shown = {shown}
for at in shown:  # the lengths of the parts and of their sum; the shares of the parts in it
    print(trace.tokens[at], result.norms[:, at].round(2), result.total_norms[at].round(2))
    print(result.shares[:, at].round(3))
print(cosine_similarities({vectors}[list(shown)]).round(3))  # how alike these tokens are
positions = cosine_similarities(embedding_table(bert, "position"))
print(positions[::4, ::4].round(3))  # how alike the places are
print(mean_by_distance(positions).round(3))  # and by how far they are apart"""


def snippet(view, shared, trace, shown, of):
    """The sum of three vectors; shown: positions. of: the vector whose similarity is shown."""
    vectors = "result.total" if of == "sum" else f"result.vectors[result.parts.index({of!r})]"
    imports = (
        "from bert_tf.explain import cosine_similarities, embedding_parts, embedding_table",
        "from bert_tf.explain.representations.vectors import mean_by_distance",
    )
    return about(view, shared, trace, imports, _INPUTSUM.format(shown=span(shown), vectors=vectors))
