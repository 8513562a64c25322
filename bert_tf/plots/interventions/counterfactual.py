"""Figures of counterfactuals: the predictions for variants of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.plots.predictions import predictions
from bert_tf.plots.ranked_bars import ranked_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.interventions.counterfactual import Counterfactuals


def counterfactual_changes(result: Counterfactuals, dark: bool = False) -> go.Figure:
    """How far each variant of ``Counterfactuals`` changes the predictions.

    With masks: the mean divergence over them. Without masks: the change of the prediction for the pair.
    """
    masked = [prediction for prediction in result.variants if prediction.masks]
    if masked:
        top_words = [" ".join(mask.predictions[0].token for mask in prediction.masks) for prediction in masked]
        names = [f"{prediction.variant.label}: {words}" for prediction, words in zip(masked, top_words)]
        bits = [float(np.mean(prediction.divergences)) for prediction in masked]
        return ranked_bars(names, bits, "change of the prediction, bits", dark)
    units = {"nsp_change": "change of P(IsNext)", "sop_change": "change of P(in order)"}
    for name, unit in units.items():
        # A variant with one text has no prediction for the pair.
        changes = [(prediction.variant.label, getattr(prediction, name)) for prediction in result.variants]
        changes = [(label, change) for label, change in changes if change is not None]
        if changes:
            return ranked_bars([label for label, _ in changes], [change for _, change in changes], unit, dark)
    return ranked_bars([], [], "", dark)


def counterfactual_predictions(result: Counterfactuals, dark: bool = False) -> go.Figure:
    """The predictions at the masks of the input, then of each variant of ``Counterfactuals``.

    Without masks: the predictions for the pair.
    """
    masks = [(mask, "the input") for mask in result.before]
    masks += [(mask, prediction.variant.label) for prediction in result.variants for mask in prediction.masks]
    if masks:
        return predictions([mask for mask, _ in masks], names=[name for _, name in masks], dark=dark)
    is_order = result.nsp_before is None
    pair_predictions: list[tuple[str, Any]] = [("the input", result.sop_before if is_order else result.nsp_before)]
    pair_predictions += [
        (prediction.variant.label, prediction.sop if is_order else prediction.nsp) for prediction in result.variants
    ]
    bars = [(name, prediction[0]) for name, prediction in pair_predictions if prediction is not None]
    unit = "P(in order)" if is_order else "P(IsNext)"
    return ranked_bars([name for name, _ in bars], [probability for _, probability in bars], unit, dark)
