"""The Python code for what the page input embeddings shows."""

from ui.widgets.snippet_parts import about, span

_PARTS = """\
result = {call}
drawn = {drawn}
for at in drawn:  # the lengths of the parts and of their sum; the shares of the parts in it
    print(trace.tokens[at], result.norms[:, at].round(2), result.total_norms[at].round(2))
    print(result.shares[:, at].round(3))
print(cosine_similarities({vectors}[list(drawn)]).round(3))  # how alike these tokens are"""
_POSITIONS = """\
positions = {call}
print(positions.cosines[::{step}, ::{step}].round(3))  # how alike the positions are
print(positions.mean_by_distance.round(3))  # and by how far they are apart"""


def snippet(view, shared, trace, call, drawn, of, positions_call, step):
    """The sum of three vectors, and the table of positions.

    Args:
        call: ``Call`` of `embedding_parts`. drawn: positions. of: the vector whose similarity is shown.
        positions_call: ``Call`` of `position_similarity`, or None without a table of positions. step: between the
            positions that are drawn.
    """
    vectors = "result.total" if of == "sum" else f"result.vectors[result.parts.index({of!r})]"
    positions_imports = positions_call.imports() if positions_call else []
    imports = [*call.imports(), *positions_imports, "from bert_tf.explain import cosine_similarities"]
    parts = _PARTS.format(call=call.python("bert", "trace"), drawn=span(drawn), vectors=vectors)
    steps = [_POSITIONS.format(call=positions_call.python("bert"), step=step)] if positions_call else []
    return about(view, shared, trace, imports, parts, *steps)
