"""How much an answer hangs on each part of a model."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.panels import answer_panels, value_map
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape, unique_labels

#: Parts that a figure of the strongest ones shows.
LONGEST_LIST = 15


def ablation_effect(result, dark=False):
    """The answers of an ``AblationEffect`` before and after, and under them the share of its attention that each head
    turns elsewhere, where that is known. Layers and heads count from 0."""
    panels = _panels(result)
    shifts = result.attention_shifts
    more = [] if shifts is None else ["attention that goes elsewhere, head by head"]
    figure, rows = answer_panels(panels, ("as it is", "without"), more), len(panels) + len(more)
    if shifts is not None:
        layers, heads = ([str(number) for number in range(count)] for count in shifts.shape)
        shifted = value_map(shifts, heads, layers, dark, "layer %{y}, head %{x}: %{z:.1%}")
        figure.add_trace(shifted.update(showscale=False), row=rows, col=1)
        figure.update_yaxes(row=rows, col=1, type="category", autorange="reversed")
        figure.update_xaxes(row=rows, col=1, type="category")
    return apply_theme(figure, dark, 120 + 230 * rows)


def _panels(result):
    """(title, answers before, answers after) of every answer of an ``AblationEffect``."""

    def of_mask(mask):
        return [{"token": one.token, "probability": one.probability} for one in mask.predictions]

    def of_shares(shares):
        return [{"token": name, "probability": share} for name, share in shares]

    panels = [
        (f"token {before.position}", of_mask(before), of_mask(after))
        for before, after in zip(result.before, result.after)
    ]
    if result.nsp_before is not None:
        both = result.nsp_before.is_next, result.nsp_after.is_next
        panels.append(("next sentence", *(of_shares([("B follows A", share)]) for share in both)))
    if result.sop_before is not None:
        both = result.sop_before.in_order, result.sop_after.in_order
        panels.append(("sentence order", *(of_shares([("A and B in order", share)]) for share in both)))
    if result.classes_before is not None:
        panels.append(("class", *(of_shares(one.items()) for one in (result.classes_before, result.classes_after))))
    if result.replaced_before is not None:
        names = unique_labels(result.tokens)
        both = result.replaced_before, result.replaced_after
        panels.append(("replaced", *(of_shares(zip(names, map(float, one))) for one in both)))
    return panels


#: Column of an ``AblationSweep``'s table -> what it counts; the first that is there ranks the parts.
_SWEPT = {
    "divergence_bits": "change of the prediction, bits",
    "class_change": "change of the class, nats or units of its value",
    "is_next_change": "change of P(IsNext)",
    "in_order_change": "change of P(in order)",
    "replaced_change": "change of P(replaced), mean of the tokens",
}


def strongest_ablations(result, dark=False):
    """The parts of an ``AblationSweep`` whose absence changes the answers most."""
    table = result.to_frame().head(60)
    column = next(name for name in _SWEPT if name in table)
    return ranked_bars(list(table["part"]), list(table[column]), f"{_SWEPT[column]}, each off alone", dark)


def strongest_drops(result, dark=False):
    """The parts without which one answer loses most: of ``ScoreDrops``."""
    table = result.to_frame().head(LONGEST_LIST)
    unit = f"what the answer loses without it, {result.unit}"
    return ranked_bars(list(table["part"]), list(table["score_drop"]), unit, dark)


def score_drop_map(result, dark=False):
    """What one answer loses without each head, feed-forward block and layer: of ``ScoreDrops``. What was not switched
    off alone stays empty."""
    parts = [(*one.heads, *one.feed_forward, *one.layers) for one in result.ablations]
    layers = 1 + max((part[0] if isinstance(part, tuple) else part for one in parts for part in one), default=0)
    heads = 1 + max((part[1] for one in parts for part in one if isinstance(part, tuple)), default=-1)
    effects = np.full((layers, heads + 2), np.nan)
    for one, drop in zip(result.ablations, result.score_drops):
        if len(one.heads) + len(one.feed_forward) + len(one.layers) != 1 or one.tokens or one.links:
            continue
        for layer, head in one.heads:
            effects[layer, head] = drop
        for layer in one.feed_forward:
            effects[layer, heads] = drop
        for layer in one.layers:
            effects[layer, heads + 1] = drop
    return effects_map(effects, result.unit, dark, heads, first=0)


def part_names(table, column):
    """Names of the parts in a table with columns "layer" and "head": "layer 3, head 11", "layer 3, feed-forward"."""
    names = []
    for part, layer, head in zip(table[column], table["layer"].tolist(), table["head"].tolist()):
        name = part.replace("_", "-")
        if not isinstance(head, int):
            names.append(f"layer {layer}, {name}" if isinstance(layer, int) else name)
        else:
            names.append(f"layer {layer}, head {head}")
    return names


def effects_map(effects, unit, dark=False, heads=None, first=1):
    """The effect of every head, feed-forward block and layer, layers downwards.

    Args:
        effects: float [L, N + 2]: the heads, the feed-forward block, the layer; or [L, N + 1] without the layer.
            Positive: it speaks for the answer. NaN: there is nothing, and the cell stays empty.
        unit: what the numbers are.
        dark: for a dark page. heads: N; None for two less than there are columns.
        first: number of the first layer and of the first head.
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
            colorbar={
                "thickness": 8,
                "outlinewidth": 0,
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


def counted(title, first):
    """The title of an axis whose numbers begin at ``first``: the pages count from 1, saved figures from 0."""
    return title if first else f"{title}, from 0"


def by_kind(effects, heads=None):
    """Effects as `effects_map` takes them from -1 to 1: heads, feed-forward blocks and layers each by their own
    strongest."""
    scaled = np.array(effects, np.float64)
    heads = scaled.shape[1] - 2 if heads is None else heads
    for kind in (slice(0, heads), *(slice(column, column + 1) for column in range(heads, scaled.shape[1]))):
        scaled[:, kind] /= max(float(np.nanmax(np.abs(scaled[:, kind]), initial=0)), 1e-9)
    return scaled


def ranked_bars(names, values, unit, dark=False):
    """Named effects as horizontal bars, in the order given.

    Args:
        names: what each is.
        values: floats; bars to the right are blue, to the left orange.
        unit: what the numbers are, for the axis.
        dark: for a dark page.
    """
    # The zero-width space tells one "the" from another: Plotly puts equal names on one line.
    labels = [escape(name) + "\u200b" * names[:index].count(name) for index, name in enumerate(names)]
    blue = CATEGORIES[4] if dark else CATEGORIES[0]
    figure = go.Figure(
        go.Bar(
            x=[float(value) for value in values],
            y=labels,
            orientation="h",
            marker_color=[blue if value >= 0 else CATEGORIES[1] for value in values],
            hovertemplate="%{y}: %{x:.4f}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(autorange="reversed", type="category", ticks="", showgrid=False)
    # A long title is wider than a narrow figure.
    figure.layout.xaxis = dict(title=unit.replace(", ", ",<br>") if len(unit) > 40 else unit, zeroline=True)
    return apply_theme(figure, dark, height=90 + 22 * len(labels))


def replaced_bars(tokens, scores, replaced=None, dark=False):
    """The probability of every token to have been put there by a generator; those that were are orange.

    Args:
        tokens: T strings. scores: float [T]. replaced: bool [T], or None where nothing is known.
        dark: for a dark page.
    """
    figure = ranked_bars(list(tokens), scores, "probability to have been put there", dark)
    if replaced is not None:
        usual = figure.data[0].marker.color[0]
        figure.data[0].marker.color = [CATEGORIES[1] if one else usual for one in replaced]
    return figure.update_xaxes(range=[0, 1.04], tickformat=".0%")


def spread(values, name, dark=False):
    """How many of some numbers lie where, as a histogram.

    Args:
        values: floats. name: what they are.
        dark: for a dark page.
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
