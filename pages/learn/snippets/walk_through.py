"""The Python code for what the page walk_through shows."""

from ui.widgets.snippet_parts import about

_WALK = """\
walk = walk_through(bert, trace, layer={layer})  # the layer counted from 0
for step in walk.steps:
    print(step)
print(walk.embedding_sum.shape, walk.scores.shape, walk.weights.shape, walk.feed_forward_after.shape)"""


def snippet(view, shared, trace, layer):
    """The values of every step; ``layer``: from 0."""
    imports = ["from bert_tf.explain.models.walk_through import walk_through"]
    return about(view, shared, trace, imports, _WALK.format(layer=layer))
