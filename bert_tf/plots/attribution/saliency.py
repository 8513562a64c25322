"""What each word of a text adds to a prediction, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from bert_tf.plots.ranked_bars import ranked_bars
from bert_tf.plots.theme import escape

if TYPE_CHECKING:
    from bert_tf.explain.attribution.saliency import Saliency

_LONGEST_LIST = 15


def word_bars(saliency: Saliency, dark: bool = False) -> go.Figure:
    """The words with the largest absolute scores; a positive score supports the target.

    Args:
        saliency: Saliency.
        dark: bool. Whether the page is dark.
    """
    strongest = sorted(saliency.words, key=lambda scored: -abs(scored.score))[:_LONGEST_LIST]
    quantity = "log-odds" if saliency.log_odds is not None else "log-probability"
    unit = "value" if saliency.target.is_regression else f"{quantity} of {escape(saliency.target.label)}, nats"
    return ranked_bars([scored.word.text for scored in strongest], [scored.score for scored in strongest], unit, dark)
