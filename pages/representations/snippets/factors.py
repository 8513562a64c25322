"""The Python code for what the page factors shows."""

from ui.widgets.snippet_parts import about

_FACTORS = """\
result = {call}
print(result.explained, result.shares.round(3))  # shares of the squared length
print(result.weights.round(2))  # row: a factor, column: a token{which}
for one in result.units[{factor}]:  # the most active units; layers and units counted from 0
    print(one.layer, one.unit, round(one.weight, 3))"""


def snippet(view, shared, trace, call, factor):
    """Activations as a sum of factors.

    Args:
        call: ``Call`` of `neuron_factors`. factor: the open one, from 0.
    """
    which = "" if call["special"] else " of the texts"
    body = _FACTORS.format(call=call.python("bert", "trace"), which=which, factor=factor)
    return about(view, shared, trace, call.imports(), body)
