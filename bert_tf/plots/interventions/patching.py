"""Figures of activation patching and path patching: which patched vectors recover the clean prediction.

Dimension legend: L layers, N heads, T tokens, R rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.interventions.ablation import counted, effects_map, part_names
from bert_tf.plots.ranked_bars import LONGEST_LIST, ranked_bars
from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.theme import COLOUR_BAR, apply_theme, escape

if TYPE_CHECKING:
    from bert_tf.explain.interventions.patching import PatchingResult
    from bert_tf.explain.interventions.path_patching import PathPatchingResult

_MAX_HEIGHT = 1400  # of a figure, in pixels
_LABEL = 15  # the height of a label, in pixels
_COLOUR_BAR = {
    **COLOUR_BAR,
    "tickformat": ".0%",
    "tickvals": [-1, -0.5, 0, 0.5, 1],
    "title": {"text": "brings back"},
}
#: Component -> (title of the axis of columns, name of a column in a hover text).
_AXES = {
    "hidden_state": ("after layer", "after layer %{x}"),
    "attention": ("attention of layer", "attention of layer %{x}"),
    "feed_forward": ("feed-forward of layer", "feed-forward of layer %{x}"),
}


def patching_figure(result: PatchingResult, dark: bool = False) -> go.Figure:
    """The share of the difference that each patch of a ``PatchingResult`` recovers. Layers and heads count from 0."""
    if result.component == "head":
        return patched_heads_map(result.recovered, dark, first=0)
    return patch_map(result.recovered, result.tokens, result.corrupted_tokens, dark, result.component, first=0)


def path_map(result: PathPatchingResult, dark: bool = False) -> go.Figure:
    """The share that the path from each head and feed-forward block of a ``PathPatchingResult`` recovers.

    Cells without a path stay empty. Layers and heads count from 0.
    """
    shares = np.where(result.has_path, result.recovered, np.nan)
    return effects_map(shares, "of the difference", dark, shares.shape[1] - 1, first=0)


def strongest_paths(result: PathPatchingResult, dark: bool = False) -> go.Figure:
    """The paths of a ``PathPatchingResult`` that recover most."""
    table = result.to_frame()
    table = table[table["sender"] != "everything"]
    table = table.sort_values("recovered", key=np.abs, ascending=False, kind="stable").head(LONGEST_LIST)
    values = np.nan_to_num(table["recovered"])
    figure = ranked_bars(part_names(table, "sender"), values, "brought back, of the difference", dark)
    return figure.update_xaxes(tickformat=".0%")


def patch_map(
    recovered: np.ndarray,
    clean_tokens: Sequence[str],
    corrupted_tokens: Sequence[str],
    dark: bool = False,
    component: str = "hidden_state",
    first: int = 1,
) -> go.Figure:
    """The share of the difference that each vector recovers: a row for each token, a column for each layer.

    Args:
        recovered: np.ndarray. float [R, T], as in ``PatchingResult.recovered``.
        clean_tokens, corrupted_tokens: sequence of str. T tokens each.
        dark: bool. Whether the page is dark.
        component: str. The kind of vector, as in ``PatchingResult``.
        first: int. The number of the first layer; not used for hidden states.
    """
    names = state_names(len(recovered))
    axis, place = _AXES[component]
    if component != "hidden_state":
        names, axis = list(map(str, range(first, first + len(recovered)))), counted(axis, first)
    labels = [
        escape(clean) if clean == corrupted else f"<b>{escape(clean)} | {escape(corrupted)}</b>"
        for clean, corrupted in zip(clean_tokens, corrupted_tokens)
    ]
    count = len(labels)
    height = int(min(130 + 24 * count, _MAX_HEIGHT))
    every = max(1, -(-count * _LABEL // (height - 110)))
    shares = np.nan_to_num(np.asarray(recovered, np.float32)).T
    figure = go.Figure(
        go.Heatmap(
            z=np.clip(shares, -1, 1),
            customdata=np.dstack([shares, np.repeat(np.arange(count)[:, None], len(names), axis=1)]),
            text=[[label] * len(names) for label in labels],
            x=names,
            y=list(range(count)),
            zmin=-1,
            zmax=1,
            colorscale=diverging_scale(dark),
            xgap=1,
            ygap=1,
            colorbar=_COLOUR_BAR,
            hovertemplate=f"%{{text}}, {place}" + "<br>brings back %{customdata[0]:.1%}<extra></extra>",
        )
    )
    labelled = list(range(0, count, every))
    figure.layout.yaxis = dict(
        autorange="reversed",
        tickvals=labelled,
        ticktext=[labels[index] for index in labelled],
        showgrid=False,
        zeroline=False,
        ticks="",
    )
    figure.layout.xaxis = dict(title=axis, type="category", side="top", showgrid=False, ticks="")
    return apply_theme(figure, dark, height=height)


def patched_heads_map(recovered: np.ndarray, dark: bool = False, first: int = 1) -> go.Figure:
    """The share of the difference that each head recovers: a row for each layer, a column for each head.

    Args:
        recovered: np.ndarray. float [L, N], as in ``PatchingResult.recovered`` for heads.
        dark: bool. Whether the page is dark.
        first: int. The number of the first layer and of the first head.
    """
    shares = np.nan_to_num(np.asarray(recovered, np.float32))
    layers, heads = shares.shape
    figure = go.Figure(
        go.Heatmap(
            z=np.clip(shares, -1, 1),
            customdata=shares[..., None],
            x=list(map(str, range(first, first + heads))),
            y=list(map(str, range(first, first + layers))),
            zmin=-1,
            zmax=1,
            colorscale=diverging_scale(dark),
            xgap=2,
            ygap=2,
            colorbar=_COLOUR_BAR,
            hovertemplate="layer %{y}, head %{x}<br>brings back %{customdata[0]:.1%}<extra></extra>",
        )
    )
    figure.layout.yaxis = dict(
        autorange="reversed", title=counted("layer", first), type="category", showgrid=False, ticks=""
    )
    figure.layout.xaxis = dict(
        title=counted("head put back", first), side="top", type="category", showgrid=False, ticks=""
    )
    return apply_theme(figure, dark, height=130 + 30 * layers)
