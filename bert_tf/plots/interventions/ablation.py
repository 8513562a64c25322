"""Figures of ablation: how much a prediction depends on each part of a model.

Dimension legend: L layers, N heads, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.panels import answer_panels, value_map
from bert_tf.plots.ranked_bars import LONGEST_LIST, ranked_bars
from bert_tf.plots.theme import CATEGORIES, COLOUR_BAR, apply_theme

if TYPE_CHECKING:
    from bert_tf.explain.interventions.ablation_effects import AblationEffect, AblationSweep, ScoreDrops


def ablation_effect(result: AblationEffect, dark: bool = False) -> go.Figure:
    """The predictions of an ``AblationEffect`` before and after, and every head's attention shift if it is known.

    Layers and heads count from 0.
    """
    panels = _panels(result)
    shifts = result.attention_shifts
    map_titles = [] if shifts is None else ["attention that goes elsewhere, head by head"]
    figure, rows = answer_panels(panels, ("as it is", "without"), map_titles), len(panels) + len(map_titles)
    if shifts is not None:
        layers, heads = ([str(number) for number in range(count)] for count in shifts.shape)
        shifted = value_map(shifts, heads, layers, dark, "layer %{y}, head %{x}: %{z:.1%}")
        figure.add_trace(shifted.update(showscale=False), row=rows, col=1)
        figure.update_yaxes(row=rows, col=1, type="category", autorange="reversed")
        figure.update_xaxes(row=rows, col=1, type="category")
    return apply_theme(figure, dark, 120 + 230 * rows)


def _panels(result):
    """(title, predictions before, predictions after) for every prediction of an ``AblationEffect``."""

    def of_mask(mask):
        return [{"token": prediction.token, "probability": prediction.probability} for prediction in mask.predictions]

    def of_probabilities(pairs):
        return [{"token": name, "probability": probability} for name, probability in pairs]

    panels = [
        (f"token {before.position}", of_mask(before), of_mask(after))
        for before, after in zip(result.before, result.after)
    ]
    if result.nsp_before is not None:
        both = result.nsp_before.is_next, result.nsp_after.is_next
        panels.append(("next sentence", *(of_probabilities([("B follows A", probability)]) for probability in both)))
    if result.sop_before is not None:
        both = result.sop_before.in_order, result.sop_after.in_order
        panels.append(
            ("sentence order", *(of_probabilities([("A and B in order", probability)]) for probability in both))
        )
    if result.classes_before is not None:
        both = result.classes_before, result.classes_after
        panels.append(("class", *(of_probabilities(classes.items()) for classes in both)))
    if result.replaced_before is not None:
        # Plotly would draw two bars of equal tokens at the same place.
        names = [f"{position}: {token}" for position, token in enumerate(result.tokens)]
        both = result.replaced_before, result.replaced_after
        panels.append(("replaced", *(of_probabilities(zip(names, map(float, scores))) for scores in both)))
    return panels


#: Column of an ``AblationSweep``'s table -> its axis title. The first column that the table has ranks the parts.
_SWEPT = {
    "divergence_bits": "change of the prediction, bits",
    "class_change": "change of the class, nats or units of its value",
    "is_next_change": "change of P(IsNext)",
    "in_order_change": "change of P(in order)",
    "replaced_change": "change of P(replaced), mean of the tokens",
}


def strongest_ablations(result: AblationSweep, dark: bool = False) -> go.Figure:
    """The parts of an ``AblationSweep`` whose absence changes the predictions most."""
    table = result.to_frame().head(60)
    column = next(name for name in _SWEPT if name in table)
    return ranked_bars(list(table["part"]), list(table[column]), f"{_SWEPT[column]}, each off alone", dark)


def strongest_drops(result: ScoreDrops, dark: bool = False) -> go.Figure:
    """The parts of ``ScoreDrops`` with the greatest drops, in either direction."""
    table = result.to_frame().head(LONGEST_LIST)
    unit = f"what the answer loses without it, {result.unit}"
    return ranked_bars(list(table["part"]), list(table["score_drop"]), unit, dark)


def score_drop_map(result: ScoreDrops, dark: bool = False) -> go.Figure:
    """The drop without each head, feed-forward block and layer of ``ScoreDrops``.

    The cells of parts that were not switched off by themselves stay empty.
    """
    parts = [
        part for ablation in result.ablations for part in (*ablation.heads, *ablation.feed_forward, *ablation.layers)
    ]
    layers = 1 + max((part[0] if isinstance(part, tuple) else part for part in parts), default=0)
    heads = 1 + max((part[1] for part in parts if isinstance(part, tuple)), default=-1)
    effects = np.full((layers, heads + 2), np.nan)
    for ablation, drop in zip(result.ablations, result.score_drops):
        count = len(ablation.heads) + len(ablation.feed_forward) + len(ablation.layers)
        if count != 1 or ablation.tokens or ablation.links:
            continue
        for layer, head in ablation.heads:
            effects[layer, head] = drop
        for layer in ablation.feed_forward:
            effects[layer, heads] = drop
        for layer in ablation.layers:
            effects[layer, heads + 1] = drop
    return effects_map(effects, result.unit, dark, heads, first=0)


def part_names(table: Any, column: str) -> list[str]:
    """Names of the parts in a table: "layer 3, head 11", "layer 3, feed-forward".

    Args:
        table: pandas.DataFrame. It has the columns "layer" and "head".
        column: str. The column with the kind of part.
    """
    names = []
    for part, layer, head in zip(table[column], table["layer"].tolist(), table["head"].tolist()):
        name = part.replace("_", "-")
        if not isinstance(head, int):
            names.append(f"layer {layer}, {name}" if isinstance(layer, int) else name)
        else:
            names.append(f"layer {layer}, head {head}")
    return names


def effects_map(
    effects: np.ndarray, unit: str, dark: bool = False, heads: int | None = None, first: int = 1
) -> go.Figure:
    """The effect of every head, feed-forward block and layer as a heatmap, with the first layer at the top.

    Args:
        effects: np.ndarray. float [L, N + 2]: the heads, the feed-forward block, the layer; or [L, N + 1] without the
            layer. Positive: the part supports the prediction. NaN: no value, and the cell stays empty.
        unit: str. The unit of the numbers.
        dark: bool. Whether the page is dark.
        heads: int. N; None for two less than the number of columns.
        first: int. The number of the first layer and of the first head.
    """
    layers, columns = effects.shape
    heads = columns - 2 if heads is None else heads
    names = [*map(str, range(first, first + heads)), "FF", "layer"][:columns]
    scaled = by_kind(effects, heads)
    figure = go.Figure(
        go.Heatmap(
            z=scaled,
            x=names,
            y=list(map(str, range(first, first + layers))),
            customdata=effects,
            colorscale=diverging_scale(dark),
            zmin=-1,
            zmax=1,
            hovertemplate="layer %{y}, %{x}: %{customdata:.4f} " + unit + "<extra></extra>",
            hoverongaps=False,
            colorbar={
                **COLOUR_BAR,
                "tickvals": [-1, 0, 1],
                "ticktext": ["against", "none", "for"],
            },
            xgap=2,
            ygap=2,
        )
    )
    figure.layout.yaxis = dict(
        autorange="reversed", title=counted("layer", first), type="category", showgrid=False, ticks=""
    )
    figure.layout.xaxis = dict(title=counted("head", first), side="top", type="category", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=130 + 30 * layers)


def counted(title: str, first: int) -> str:
    """The title of an axis whose numbers begin at ``first``. Numbers on the pages begin at 1, in saved figures at 0."""
    return title if first else f"{title}, from 0"


def by_kind(effects: np.ndarray, heads: int | None = None) -> np.ndarray:
    """Effects as in `effects_map`, scaled to -1 to 1 by the strongest effect of their kind.

    The kinds are the heads, the feed-forward blocks and the layers.
    """
    scaled = np.array(effects, np.float64)
    heads = scaled.shape[1] - 2 if heads is None else heads
    for kind in (slice(0, heads), *(slice(column, column + 1) for column in range(heads, scaled.shape[1]))):
        scaled[:, kind] /= max(float(np.nanmax(np.abs(scaled[:, kind]), initial=0)), 1e-9)
    return scaled


def replaced_bars(
    tokens: Sequence[str],
    scores: Sequence[float] | np.ndarray,
    replaced: Sequence[bool] | None = None,
    dark: bool = False,
) -> go.Figure:
    """The probability of every token that it was replaced; the bars of replaced tokens are orange.

    Args:
        tokens: sequence of str. The T tokens.
        scores: np.ndarray. float [T].
        replaced: sequence of bool. T values, whether each token was replaced; None if it is not known.
        dark: bool. Whether the page is dark.
    """
    figure = ranked_bars(list(tokens), scores, "probability of being replaced", dark)
    if replaced is not None:
        blue = figure.data[0].marker.color[0]
        figure.data[0].marker.color = [CATEGORIES[1] if is_replaced else blue for is_replaced in replaced]
    return figure.update_xaxes(range=[0, 1.04], tickformat=".0%")


def spread(values: Sequence[float] | np.ndarray, name: str, dark: bool = False) -> go.Figure:
    """A histogram of some numbers.

    Args:
        values: sequence of float. The numbers.
        name: str. The title of the axis.
        dark: bool. Whether the page is dark.
    """
    figure = go.Figure(
        go.Histogram(
            x=[float(value) for value in values],
            nbinsx=30,
            marker_color=CATEGORIES[4] if dark else CATEGORIES[0],
            hovertemplate="%{x}: %{y}<extra></extra>",
        )
    )
    figure.layout.xaxis = dict(title=name)
    figure.layout.yaxis = dict(title="how many")
    return apply_theme(figure, dark, height=360)
