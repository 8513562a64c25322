"""What the component "walk" draws of a walk through a model: at most 24 tokens, and 24 units of each vector.

Dimension legend: T tokens, K drawn tokens, U drawn units, N heads, L layers.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from bert_tf.explain.models.walk_through import WalkThrough

MOST_TOKENS, MOST_UNITS = 24, 24
#: Units of all heads' outputs, side by side.
_JOINED_UNITS = 48
_MOST_LIKELY = 5
#: Field of `WalkThrough` with a vector for every token -> the width whose units are drawn.
_VECTORS = {
    "embedding_sum": "embedding",
    "embedding_norm": "embedding",
    "attention_output": "hidden",
    "attention_norm": "hidden",
    "feed_forward_before": "inner",
    "feed_forward_after": "inner",
    "feed_forward_output": "hidden",
    "feed_forward_norm": "hidden",
}


def drawn_positions(tokens: int, token: int) -> range:
    """The positions that are drawn of an input: all of them, or the `MOST_TOKENS` around one token.

    The part begins anew only after every twelve tokens, so that it stays while neighbours are chosen.

    Args:
        tokens: int. T. token: int. The position that is surely drawn.
    """
    half = MOST_TOKENS // 2
    first = min(max(token // half * half - half // 2, 0), max(tokens - MOST_TOKENS, 0))
    return range(first, min(first + MOST_TOKENS, tokens))


def sampled_units(size: int, most: int = MOST_UNITS) -> np.ndarray:
    """The units of a vector that are drawn: all of them, or `most` at equal steps from the first to the last."""
    return np.unique(np.linspace(0, size - 1, min(size, most)).round().astype(int))


def drawing(walk: WalkThrough, head: int) -> dict[str, Any]:
    """The data of the component: plain values, and float32 arrays as base64.

    Args:
        walk: `WalkThrough`; its `positions` are drawn.
        head: int. The head whose queries, keys and values are drawn, from 0.
    """
    config, places = walk.config, list(walk.positions)
    widths = {
        "hidden": config.hidden_size,
        "embedding": config.embedding_width,
        "inner": config.intermediate_size,
        "head": walk.queries.shape[-1],
    }
    units = {name: sampled_units(width) for name, width in widths.items()}
    state = walk.hidden_states[walk.layer]
    attention_sum = state + walk.attention_output
    norm_first = config.architecture.norm_first
    feed_forward_sum = (attention_sum if norm_first else walk.attention_norm) + walk.feed_forward_output
    vectors = {f"part_{name}": (part, "embedding") for name, part in zip(walk.part_names, walk.parts)}
    vectors |= {name: (getattr(walk, name), width) for name, width in _VECTORS.items()}
    vectors |= {
        "state": (state, "hidden"),
        "attention_sum": (attention_sum, "hidden"),
        "feed_forward_sum": (feed_forward_sum, "hidden"),
        "query": (walk.queries[head], "head"),
        "key": (walk.keys[head], "head"),
        "value": (walk.values[head], "head"),
        "head_output": (walk.head_outputs[head], "head"),
    }
    strips = {name: _strip(values[places], units, width) for name, (values, width) in vectors.items()}
    if walk.lens is not None:
        strips["read"] = _strip(walk.read, units, "hidden")
        strips["transformed"] = _strip(walk.transformed, units, "embedding")
    weights = walk.weights[head][places]
    return {
        "layer": walk.layer,
        "head": head,
        "layers": config.num_hidden_layers,
        "heads": config.num_attention_heads,
        "norm_first": norm_first,
        "normalised_output": not norm_first or walk.layer == config.num_hidden_layers - 1,
        "gated": config.architecture.gated_units,
        "steps": list(walk.steps),
        "tokens": [walk.tokens[place] for place in places],
        "ids": [int(walk.token_ids[place]) for place in places],
        "masked": [place in walk.masks for place in places],
        "first": places[0],
        "total": len(walk.tokens),
        "groups": _groups(walk, places),
        "parts": list(walk.part_names),
        "units": {name: (chosen + 1).tolist() for name, chosen in units.items()},
        "widths": widths,
        "strips": strips,
        "states": packed(walk.hidden_states[:, places][..., units["hidden"]]),
        "scores": packed(walk.scores[head][places][:, places]),
        "weights": packed(weights[:, places]),
        "rest": _rounded(1 - weights[:, places].sum(axis=1)) if len(places) < len(walk.tokens) else None,
        "joined": _joined(walk, places),
        "active": _rounded((walk.feed_forward_before[places] > 0).mean(axis=1)),
        "curve": {"x": _rounded(walk.activation[0]), "y": _rounded(walk.activation[1])},
        **_predictions(walk, places, units["hidden"]),
    }


def packed(values: np.ndarray) -> str:
    """Values as little-endian float32 in base64."""
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode("ascii")


def _strip(values, units, width):
    """The drawn units of vectors [K, H], the lengths of the whole vectors, and the value with full colour."""
    sample = values[:, units[width]]
    # A few units of a trained model are many times greater than all others, which would be drawn without colour.
    full = np.percentile(np.abs(sample), 95) or 1.0
    return {
        "values": packed(sample),
        "width": width,
        "lengths": [round(float(length), 2) for length in np.linalg.norm(values, axis=-1)],
        "full": float(full),
    }


def _groups(walk, places):
    """The drawn tokens by word: dicts with the word's text, None for a token that the model adds, and its tokens."""
    word_of = {position: word for word in walk.words for position in word.positions}
    groups: list[dict[str, Any]] = []
    for index, place in enumerate(places):
        word = word_of.get(place)
        if word is not None and index and word_of.get(places[index - 1]) is word:
            groups[-1]["pieces"].append(index)
        else:
            groups.append({"text": word and word.text, "side": word and word.source, "pieces": [index]})
    return groups


def _joined(walk, places):
    """Some units of every head's output for the drawn tokens, and the token that each head reads most."""
    heads, _, size = walk.head_outputs.shape
    units = sampled_units(size, max(1, _JOINED_UNITS // heads))
    weights = walk.weights[:, places].swapaxes(0, 1)  # [K, N, T]
    return {
        "values": packed(walk.head_outputs[:, places][..., units].swapaxes(0, 1)),
        "units": (units + 1).tolist(),
        "full": float(np.percentile(np.abs(walk.head_outputs[:, places][..., units]), 95) or 1.0),
        "most": [[walk.tokens[key] for key in row] for row in weights.argmax(axis=-1)],
        "shares": [_rounded(row) for row in weights.max(axis=-1)],
    }


def _predictions(walk, places, units):
    """What the heads compute; only those that the model has."""
    predictions: dict[str, Any] = {}
    if walk.lens is not None:
        predictions["lens"] = {
            "words": [[row[0] for row in rows] for rows in walk.lens.predicted_tokens],
            "shares": [_rounded(rows[:, 0]) for rows in walk.lens.probabilities],
        }
        predictions["mlm"] = [
            [[token, float(share)] for token, share in zip(rows[-1][:_MOST_LIKELY], shares[-1])]
            for rows, shares in zip(walk.lens.predicted_tokens, walk.lens.probabilities)
        ]
    first = {"token": walk.tokens[0], "state": packed(walk.hidden_states[-1, 0, units])}
    if walk.pooled is not None:
        first["pooled"] = packed(walk.pooled[units])
    predictions["summary"] = first
    if walk.pair is not None:
        predictions["pair"] = list(walk.pair)
    if walk.replaced is not None:
        predictions["replaced"] = _rounded(walk.replaced[places])
    if walk.task is not None:
        predictions["task"] = _task(walk, places)
    return predictions


def _task(walk, places):
    """The output of a fine-tuned model's head."""
    scores, labels = walk.task.values, list(walk.task.labels)
    head_output = {"kind": walk.task.task, "labels": labels, "is_probability": walk.task.is_probability}
    if walk.task.task != "answer":
        values = [_rounded(row) for row in scores[places]] if scores.ndim == 2 else _rounded(scores)
        return {**head_output, "values": values}
    # The most probable places of the whole input: in a long text they need not be among the drawn tokens.
    best = np.argsort(-scores, axis=0, kind="stable")[:_MOST_LIKELY]
    ends = [
        {
            "label": label,
            "tokens": [
                {"token": walk.tokens[place], "position": int(place), "share": float(scores[place, column])}
                for place in best[:, column]
            ],
        }
        for column, label in enumerate(labels)
    ]
    return {**head_output, "ends": ends}


def _rounded(values):
    return [round(float(value), 5) for value in values]
