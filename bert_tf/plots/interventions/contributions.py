"""What each part of a model puts into an answer directly, as figures. Layers and heads count from 0."""

import numpy as np

from bert_tf.plots.interventions.ablation import LONGEST_LIST, effects_map, part_names, ranked_bars


def contributions_map(result, dark=False):
    """Every head and feed-forward block of a ``Contributions``, layers downwards."""
    shares = np.column_stack([result.heads, result.feed_forward])
    return effects_map(shares, _unit(result), dark, result.heads.shape[1], first=0)


def strongest_contributions(result, dark=False):
    """The strongest parts of a ``Contributions``."""
    table = result.to_frame().head(LONGEST_LIST)
    return ranked_bars(part_names(table, "component"), list(table["contribution"]), f"share, {_unit(result)}", dark)


def _unit(result):
    return "of the value" if result.target.is_regression else "nats of log-odds"
