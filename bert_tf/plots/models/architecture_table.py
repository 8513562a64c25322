"""Figures of the architectures' sizes: parameters by part, and the operations or time of a forward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from bert_tf.plots.models.architecture import sizes
from bert_tf.plots.theme import apply_theme, escape, head_colours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bert_tf.explain.models.architecture_table import ArchitectureRow, ArchitectureTable


_ROW_HEIGHT = 21  # pixels


def parameters_by_part(rows: Sequence[ArchitectureRow], dark: bool = False) -> go.Figure:
    """The parameters of each size, a bar of its embeddings, encoder and output heads.

    Args:
        rows: sequence of `ArchitectureRow`.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    figure = sizes([(row.name, row.parts) for row in rows], dark)
    return _aligned(figure, rows)


def flops_or_time(
    rows: Sequence[ArchitectureRow], times: dict[str, float] | None = None, dark: bool = False
) -> go.Figure:
    """The operations per token, or the time of a pass, of each size, as points on a logarithmic axis.

    Args:
        rows: sequence of `ArchitectureRow`.
        times: dict str -> float or None. Name of a row -> seconds; None draws the operations. A size with a time that
            was not measured over all its layers has a hollow point.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    values: list[float | None]
    if times is None:
        values, title, tip = [row.flops / row.tokens for row in rows], "operations per token", "%{x:.3s}"
    else:
        values = [1000 * times[row.name] if row.name in times else None for row in rows]
        title, tip = f"milliseconds on this machine, {rows[0].tokens} tokens", "%{x:.3~g} ms"
    hollow = [times is not None and not row.timed_whole for row in rows]
    figure = go.Figure(
        go.Scatter(
            x=values,
            y=[escape(row.name) for row in rows],
            mode="markers",
            marker={
                "size": 10,
                "color": head_colours(dark)[0],
                "symbol": ["circle-open" if is_hollow else "circle" for is_hollow in hollow],
            },
            hovertemplate=f"%{{y}}: {tip}<extra></extra>",
        )
    )
    figure.update_yaxes(type="category")
    figure.update_xaxes(type="log", title=title, tickformat="~s", dtick=1)
    return _aligned(apply_theme(figure, dark), rows)


def _aligned(figure, rows):
    # The two figures stand side by side: a size has the same vertical position in both.
    figure.update_yaxes(tickfont={"size": 11}, dtick=1, autorange=False, range=[len(rows) - 0.5, -0.5])
    return figure.update_layout(height=120 + _ROW_HEIGHT * len(rows), margin={"t": 48})


def table_parameters(table: ArchitectureTable, dark: bool = False) -> go.Figure:
    """The parameters of each size of an `ArchitectureTable`, a bar of its embeddings, encoder and output heads."""
    return parameters_by_part(table.rows, dark)


def table_flops_or_time(table: ArchitectureTable, dark: bool = False) -> go.Figure:
    """The time of a pass of each size of an `ArchitectureTable` where it was measured, otherwise the operations."""
    if table.seconds is None:
        return flops_or_time(table.rows, None, dark)
    times = {row.name: seconds for row, seconds in zip(table.rows, table.seconds) if seconds is not None}
    return flops_or_time(table.rows, times, dark)
