"""The weights of the labels in the loss."""

import math
import re

from bert_tf.errors import TaskError


def class_weights(text: str, counts: dict[str, int]) -> dict[str, float]:
    """Parses the option `--class-weights`.

    Args:
        text: str. "balanced", which gives every label the same sum of weights, or LABEL=WEIGHT,…
        counts: dict label -> number of its examples, for all labels to learn.

    Returns: dict label -> weight, only for the labels in `text`.

    Raises: TaskError on a label that is unknown or named twice, on a weight that is not a number of at least 0, or if
        all weights are 0.
    """
    if text == "balanced":
        total = sum(counts.values())
        return {label: total / (len(counts) * count) for label, count in counts.items() if count}
    # Labels may hold commas, so known ones are looked for.
    labels = "|".join(re.escape(label) for label in sorted(counts, key=len, reverse=True))
    part = re.compile(rf"\s*(?P<label>{labels})\s*=(?P<weight>[^,=]*)(?:,(?=.)|$)", re.DOTALL)
    weights: dict[str, float] = {}
    at = 0
    while at < len(text):
        match = part.match(text, at)
        weight = _number(match["weight"]) if match else math.nan
        if match is None or not 0 <= weight < math.inf:
            raise TaskError(
                f'--class-weights has {text[at:].split(",")[0]!r:.60}; it must be "balanced" or LABEL=WEIGHT,… with '
                f"the labels {', '.join(map(repr, counts)):.160}."
            )
        if match["label"] in weights:
            raise TaskError(f"--class-weights names {match['label']!r:.60} twice: give each label one weight.")
        weights[match["label"]], at = weight, match.end()
    if not any(weights.get(label, 1.0) for label in counts):
        raise TaskError(f"--class-weights is {text!r:.60}: at least one label needs a weight above 0.")
    return weights


def _number(text):
    try:
        return float(text)
    except ValueError:
        return math.nan
