"""How much the examples of each label count in the loss."""

import math

from bert_tf.errors import TaskError


def class_weights(text, counts):
    """The weights that `--class-weights` asks for.

    Args:
        text: "balanced", which gives every label the same sum of weights, or LABEL=WEIGHT,…
        counts: dict of every label to learn -> its number of examples.
    Returns:
        dict label -> weight, those not named left out.
    Raises:
        TaskError: an unknown label, or a weight that is no number from 0 on.
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
    return weights
