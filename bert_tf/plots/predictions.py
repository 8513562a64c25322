"""Fill-mask predictions as bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.interventions.ablation import replaced_bars
from bert_tf.plots.numbers import percent
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape
from bert_tf.plots.training.task_predictions import probabilities

if TYPE_CHECKING:
    from bert_tf.inference.answer import Answer
    from bert_tf.inference.joint_filling import JointFilling
    from bert_tf.inference.predictions import MaskPrediction
    from bert_tf.inference.trace import PairPrediction


def predictions(answers: Sequence[MaskPrediction], dark: bool = False, names: Iterable[str] | None = None) -> go.Figure:
    """The likeliest tokens of every mask as horizontal bars, one panel for each mask. The original token has a green
    bar; target tokens follow below, with their ranks.

    Args:
        answers: sequence of MaskPrediction.
        dark: bool. Whether the page is dark.
        names: iterable of strings or None. Titles of the panels; None for positions and original tokens.
    """
    titles = [escape(name) for name in names or map(_name, answers)]
    figure = make_subplots(
        rows=max(len(answers), 1), cols=1, subplot_titles=titles, vertical_spacing=0.25 / max(len(answers), 1)
    )
    for row, mask in enumerate(answers, start=1):
        bars = [*mask.predictions, *mask.targets]
        tokens = [escape(prediction.token) for prediction in mask.predictions]
        tokens += [f"{escape(target.token)} (rank {target.rank:,})" for target in mask.targets]
        figure.add_trace(
            go.Bar(
                x=[bar.probability for bar in bars],
                y=tokens,
                orientation="h",
                showlegend=False,
                marker_color=[CATEGORIES[2] if bar.token == mask.original else CATEGORIES[0] for bar in bars],
                text=[escape(percent(bar.probability)) for bar in bars],
                hoverinfo="skip",
            ),
            row=row,
            col=1,
        )
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(range=[0, 1], tickformat=".0%")
    size = sum(60 + 28 * (len(mask.predictions) + len(mask.targets)) for mask in answers)
    return apply_theme(figure, dark, height=80 + size)


def _name(mask: MaskPrediction) -> str:
    return f"token {mask.position}" + (f": {mask.original}" if mask.original else "")


def mask_prediction(mask: MaskPrediction, dark: bool = False) -> go.Figure:
    """`predictions` of one mask."""
    return predictions([mask], dark)


def joint_filling(filling: JointFilling, dark: bool = False) -> go.Figure:
    """`predictions` of a joint filling, a panel for each step."""
    return predictions(filling.steps, dark)


def pair_probabilities(pair: PairPrediction, dark: bool = False) -> go.Figure:
    """The probabilities of a pair of texts as bars; ``pair`` is a `NextSentence` or a `SentenceOrder`."""
    shares = pair.to_dict()
    return probabilities(list(shares), list(shares.values()), dark)


def answer(result: Answer, dark: bool = False) -> go.Figure:
    """The predictions of an answer: of its masks; without masks of its pair of texts; else the probability of every
    token to be replaced."""
    pair = result.nsp or result.sop
    if not result.masks and pair is not None:
        return pair_probabilities(pair, dark)
    if not result.masks and result.replaced is not None:
        return replaced_bars(result.tokens, result.replaced, dark=dark)
    return predictions(result.masks, dark)
