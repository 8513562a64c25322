"""The weights of the labels in the loss."""

import math

from bert_tf.errors import TaskError


def class_weights(text: str, counts: dict[str, int]) -> dict[str, float]:
    """Parses the option `--class-weights`.

    Args:
        text: str. "balanced", which gives every label the same sum of weights, or LABEL=WEIGHT,…
        counts: dict label -> number of its examples, for all labels to learn.

    Returns: dict label -> weight, only for the labels in `text`.

    Raises: TaskError on an unknown label, on a weight that is not a number of at least 0, or if all weights are 0.
    """
    if text == "balanced":
        total = sum(counts.values())
        return {label: total / (len(counts) * count) for label, count in counts.items() if count}
    weights = {}
    for part in text.split(","):
        label, _, number = part.rpartition("=")
        try:
            weights[label] = float(number)
        except ValueError:
            weights[label] = -1.0
        if label not in counts or not 0 <= weights[label] < math.inf:
            raise TaskError(
                f'--class-weights has {part!r:.60}; it must be "balanced" or LABEL=WEIGHT,… with '
                f"the labels {', '.join(counts):.160}."
            )
    if not any(weights.get(label, 1.0) for label in counts):
        raise TaskError(f"--class-weights is {text!r:.60}: at least one label needs a weight above 0.")
    return weights
