"""The Python code for what the page factors shows."""

from ui.widgets.snippet_parts import about, span

_FACTORS = """\
activations = feed_forward_activations(bert, trace{layers}{positions})  # [layers, units, tokens], at least 0
result = factorise(activations, {factors}){named}
print(result.explained, result.shares.round(3))  # shares of the squared length
print(result.weights.round(2))  # row: a factor, column: a token{which}
for one in result.strongest_units({factor}, {units}):  # layers and units counted from 0
    print(one.layer, one.unit, round(one.weight, 3))"""


def snippet(view, shared, trace, factors, layers, positions, factor, units):
    """Activations taken apart.

    Args:
        factors: how many factors. layers: the first and the last, from 0. positions: of the tokens that are looked at.
        factor: the open one, from 0. units: how many of its units are listed.
    """
    whole = layers == (0, shared.config.num_hidden_layers - 1)
    every = len(positions) == trace.length
    body = _FACTORS.format(
        layers="" if whole else f", first={layers[0]}, last={layers[1]}",
        positions="" if every else f", positions={span(positions)}",
        factors=factors,
        which="" if every else " of those",
        factor=factor,
        units=units,
        named=f".named(trace.tokens, {span(positions)}, first_layer={layers[0]})" if layers[0] else "",
    )
    imports = ("from bert_tf.explain import factorise, feed_forward_activations",)
    return about(view, shared, trace, imports, body)
