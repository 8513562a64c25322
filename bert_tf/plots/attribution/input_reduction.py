"""The probability of a prediction while words of the input are removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.representations.vectors import curves
from bert_tf.plots.theme import escape

if TYPE_CHECKING:
    from bert_tf.explain.attribution.input_reduction import InputReduction


def reduction_curve(reduction: InputReduction, dark: bool = False) -> go.Figure:
    """The target's probability in the complete input and after the removal of each word.

    Args:
        reduction: InputReduction.
        dark: bool. Whether the page is dark.
    """
    probabilities = np.exp([reduction.log_probability, *(removed.log_probability for removed in reduction.removed)])
    words = [escape(removed.word.text) for removed in reduction.removed]
    names = ["all words", *(f"{number} {word}" for number, word in enumerate(words, 1))]
    figure = curves(
        {reduction.target.label: probabilities}, names, "removed word", "probability", dark, 340, percent=True
    )
    # The likeliest outcome often has only a few percent: the axis ends a little above the largest probability.
    return figure.update_yaxes(range=[0, min(1.04, 1.25 * max(probabilities))], tickformat="~%")
