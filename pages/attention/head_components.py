"""The browser components of the attention pages that draw one head's numbers; see ``ui.elements.components``."""

import math

from bert_tf.plots.models.walk_through import packed
from ui.elements.component_registry import register

_NEURON, _WEIGHTS = register("neuron"), register("weights")


def neuron(key, result, runs, chosen, queries, keys, dark, on_query, on_key):
    """Draw how the weights of one query are computed.

    Args:
        key: the component's key. result: a ``bert_tf.explain.NeuronView``.
        runs: the direction of the text, "ltr" or "rtl". chosen: position of the key whose product is drawn enlarged.
        queries, keys: positions that may be chosen. dark: whether the page is dark.
        on_query, on_key: called with the position that was pressed.
    """
    positions = list(keys)

    def token_rows(positions):
        return [{"token": result.tokens[position], "position": int(position)} for position in positions]

    def press_handler(allowed, callback):
        def pressed(value):
            if type(value) is int and value in allowed:
                callback(value)

        return pressed

    _NEURON(
        key=key,
        presses={"query": press_handler(queries, on_query), "key": press_handler(keys, on_key)},
        data={
            "queries": token_rows(queries),
            "direction": runs,
            "keys": token_rows(positions),
            "token": result.tokens[result.position],
            "query": int(result.position),
            "key": int(chosen),
            "query_vector": packed(result.queries[result.position]),
            "key_vectors": packed(result.keys[positions]),
            # A token that the query may not attend to has no score.
            "scores": [None if math.isnan(value) else round(float(value), 5) for value in result.scores[positions]],
            "weights": [round(float(value), 6) for value in result.weights[positions]],
            "dark": dark,
        },
    )


def weights(key, tokens, places, columns, chosen, dark, on_choose, label, hint):
    """Draw a row of bars for each token.

    Args:
        key: the component's key. tokens: the strings of the trace. places: positions of the rows.
        columns: dicts with ``name``, ``note`` and ``values``, a float for each row.
        chosen: position of the token that looks. dark: whether the page is dark.
        on_choose: called with the position of the token that was pressed.
        label: the name of the drawing, for a screen reader. hint: the line above the drawing.
    """

    def pressed(value):
        if type(value) is int and 0 <= value < len(tokens):
            on_choose(value)

    rounded = [{**column, "values": [round(float(value), 6) for value in column["values"]]} for column in columns]
    _WEIGHTS(
        key=key,
        presses={"choose": pressed},
        data={
            "rows": [{"token": tokens[place], "position": int(place)} for place in places],
            "columns": rounded,
            "chosen": int(chosen),
            "dark": dark,
            "label": label,
            "hint": hint,
        },
    )
