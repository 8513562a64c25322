"""Figures of the kinds of ``explain`` about two models, or two texts, side by side; see ``explained``."""

import numpy as np

from bert_tf.plots.explained_parts import answer_panels
from bert_tf.plots.models.compare import answers_by_depth, depth_profile, difference_map
from bert_tf.plots.theme import apply_theme, escape

_HEADS = {"is_next": ("next sentence", "B follows A"), "in_order": ("sentence order", "A and B in order")}


def _compare(record, dark):
    names = _names(record["sides"])
    if record["show"] == "difference":
        one, other = (side["tokens"] for side in record["sides"])
        tokens = [a if a == b else f"{a} | {b}" for a, b in zip(one, other)]
        return difference_map(np.array(record["attention"]["difference"], np.float32), tokens, dark)
    if record["show"] == "lens":
        # The first mask: its answers through the layers of both.
        lenses = record["masks"][0]["lens"]
        curves = {f"{name}: {lens['answer']}": lens["answer_probabilities"] for name, lens in zip(names, lenses)}
        return answers_by_depth(curves, dark)
    panels = _panels(record)
    if record["show"] == "entropy" or not panels:
        profiles = {escape(name): side["entropy"] for name, side in zip(names, record["sides"])}
        return depth_profile(profiles, "mean entropy of a row, bits", dark)
    return apply_theme(answer_panels(panels, names), dark, 120 + 230 * len(panels))


def _names(sides):
    names = [side["model"] for side in sides]
    return [f"{name}, text {number}" for number, name in enumerate(names, 1)] if names[0] == names[1] else names


def _panels(record):
    """(title, answers, answers) of every question that both sides answer."""
    panels = []
    for mask in record["masks"]:
        title = " | ".join(dict.fromkeys(f"token {position}" for position in mask["positions"]))
        panels.append((title, *mask["predictions"]))
    for name, (title, label) in _HEADS.items():
        shares = [side[name] for side in record["sides"]]
        if None not in shares:
            panels.append((title, *([{"token": label, "probability": share}] for share in shares)))
    one, other = record["sides"]
    # Only equal tokens stand in one place.
    if None not in (one["replaced"], other["replaced"]) and one["tokens"] == other["tokens"]:
        names = [f"{place}: {token}" for place, token in enumerate(one["tokens"])]
        scores = ([{"token": a, "probability": b} for a, b in zip(names, side["replaced"])] for side in (one, other))
        panels.append(("replaced tokens", *scores))
    classes = [side["classes"] for side in record["sides"]]
    if None not in classes:
        said = ([{"token": label, "probability": share} for label, share in one.items()] for one in classes)
        panels.append(("class", *said))
    return panels


KINDS = {
    "compare": _compare,
}
