"""The components of the pages about attention that draw numbers of one head; see ``ui.elements.components``."""

import base64

import numpy as np

from ui.elements.component_registry import browser_value, register

_NEURON, _WEIGHTS = register("neuron"), register("weights")


def neuron(key, tokens, runs, vectors, query, chosen, queries, keys, dark, on_query, on_key):
    """Draw how the weights of one query come about; ``on_query`` and ``on_key`` get the pressed position.

    Args:
        tokens: of the trace. runs: which way its text does, "ltr" or "rtl". vectors: a ``bert_tf.explain.HeadVectors``.
        query: position of the token that looks. chosen: position of the key whose pair is shown enlarged.
        queries, keys: positions that may be chosen.
        dark: whether it is drawn for a dark page.
    """
    places = list(keys)

    def named(positions):
        return [{"token": tokens[position], "position": int(position)} for position in positions]

    def follow(name, allowed, callback):
        def pressed():
            value = browser_value(key, name)
            if type(value) is int and value in allowed:
                callback(value)

        return pressed

    _NEURON(
        key=key,
        on_query_change=follow("query", queries, on_query),
        on_key_change=follow("key", keys, on_key),
        data={
            "queries": named(queries),
            "direction": runs,
            "keys": named(places),
            "token": tokens[query],
            "query": int(query),
            "key": int(chosen),
            "query_vector": _floats(vectors.queries[query]),
            "key_vectors": _floats(vectors.keys[places]),
            "scores": [round(float(value), 5) for value in vectors.scores(query)[places]],
            "weights": [round(float(value), 6) for value in vectors.weights(query)[places]],
            "dark": dark,
        },
    )


def weights(key, tokens, places, columns, chosen, dark, on_choose, label, hint):
    """Draw a row of bars for each token; ``on_choose(position)`` follows a press on one.

    Args:
        tokens: of the trace. places: positions of the rows.
        columns: dicts with ``name``, ``note`` and ``values``, a float for each row.
        chosen: position of the token that looks. dark: whether it is drawn for a dark page.
        label: what it is, for a screen reader. hint: said above it.
    """

    def pressed():
        value = browser_value(key, "choose")
        if type(value) is int and 0 <= value < len(tokens):
            on_choose(value)

    rounded = [{**one, "values": [round(float(value), 6) for value in one["values"]]} for one in columns]
    _WEIGHTS(
        key=key,
        on_choose_change=pressed,
        data={
            "rows": [{"token": tokens[place], "position": int(place)} for place in places],
            "columns": rounded,
            "chosen": int(chosen),
            "dark": dark,
            "label": label,
            "hint": hint,
        },
    )


def _floats(values):
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode("ascii")
