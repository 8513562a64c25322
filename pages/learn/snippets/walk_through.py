"""The Python code for what the page walk_through shows."""

from ui.widgets.snippet_parts import about

_WALK = """\
walk = {call}  # the layer counted from 0
for step in walk.steps:
    print(step)
print(walk.embedding_sum.shape, walk.scores.shape, walk.weights.shape, walk.feed_forward_after.shape)"""


def snippet(view, shared, trace, call):
    """The values of every step; call: ``Call`` of `walk_through`."""
    return about(view, shared, trace, call.imports(), _WALK.format(call=call.python("bert", "trace")))
