"""Fill-mask predictions as bars."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.interventions.ablation import replaced_bars
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape
from bert_tf.plots.training.task_predictions import probabilities


def predictions(answers, dark=False, names=None):
    """The likeliest tokens of every mask as horizontal bars, one panel a mask; the original's bar is green.
    Words that were asked about follow, with their ranks.

    Args:
        answers: ``MaskPrediction``s.
        dark: for a dark page.
        names: titles of the panels; None for the tokens' numbers and originals.
    """
    names = [escape(name) for name in names or map(_name, answers)]
    figure = make_subplots(
        rows=max(len(answers), 1), cols=1, subplot_titles=names, vertical_spacing=0.25 / max(len(answers), 1)
    )
    for row, answer in enumerate(answers, start=1):
        bars = [*answer.predictions, *answer.targets]
        tokens = [escape(one.token) for one in answer.predictions]
        tokens += [f"{escape(one.token)} (rank {one.rank:,})" for one in answer.targets]
        figure.add_trace(
            go.Bar(
                x=[one.probability for one in bars],
                y=tokens,
                orientation="h",
                showlegend=False,
                marker_color=[CATEGORIES[2] if one.token == answer.original else CATEGORIES[0] for one in bars],
                text=[f"{one.probability:.1%}" for one in bars],
                hoverinfo="skip",
            ),
            row=row,
            col=1,
        )
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(range=[0, 1], tickformat=".0%")
    size = sum(60 + 28 * (len(answer.predictions) + len(answer.targets)) for answer in answers)
    return apply_theme(figure, dark, height=80 + size)


def _name(answer):
    return f"token {answer.position}" + (f": {answer.original}" if answer.original else "")


def mask_prediction(mask, dark=False):
    """`predictions` of one `MaskPrediction`."""
    return predictions([mask], dark)


def joint_filling(filling, dark=False):
    """`predictions` of a `JointFilling`, a panel for each step."""
    return predictions(filling.steps, dark)


def pair_probabilities(pair, dark=False):
    """What a head says of a pair of texts as bars; pair: a `NextSentence` or a `SentenceOrder`."""
    shares = pair.to_dict()
    return probabilities(shares, shares.values(), dark)


def answer(found, dark=False):
    """What an `Answer` holds: its masks; without masks what it says of the pair, else the score of every token."""
    pair = found.nsp or found.sop
    if found.masks or (pair is None and found.replaced is None):
        return predictions(found.masks, dark)
    return (
        pair_probabilities(pair, dark) if pair is not None else replaced_bars(found.tokens, found.replaced, dark=dark)
    )
