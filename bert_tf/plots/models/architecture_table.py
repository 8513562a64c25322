"""The family's sizes: parameters by part, and what a pass costs."""

import plotly.graph_objects as go

from bert_tf.plots.models.architecture import sizes
from bert_tf.plots.theme import apply_theme, escape, head_colours

_ROW = 21  # pixels of a size's line


def parameters_by_part(rows, dark=False):
    """Each size as a bar of its embeddings, encoder and output heads.

    Args:
        rows: `ArchitectureRow`s. dark: for a dark page.
    """
    figure = sizes([(row.name, row.parts) for row in rows], dark)
    return _lines(figure, rows)


def flops_or_time(rows, times=None, dark=False):
    """Each size as a point: operations of a pass for each token, or the time of a pass; in powers of ten.

    Args:
        rows: `ArchitectureRow`s. times: dict of a row's name -> seconds; None for the work. A size that was not timed
            whole is drawn hollow. dark: for a dark page.
    """
    if times is None:
        values, title, tip = [row.flops / row.tokens for row in rows], "operations a token", "%{x:.3s}"
    else:
        values = [1000 * times[row.name] if row.name in times else None for row in rows]
        title, tip = f"milliseconds here, {rows[0].tokens} tokens", "%{x:.3~g} ms"
    hollow = [times is not None and not row.timed_whole for row in rows]
    figure = go.Figure(
        go.Scatter(
            x=values,
            y=[escape(row.name) for row in rows],
            mode="markers",
            marker={
                "size": 10,
                "color": head_colours(dark)[0],
                "symbol": ["circle-open" if one else "circle" for one in hollow],
            },
            hovertemplate=f"%{{y}}: {tip}<extra></extra>",
        )
    )
    figure.update_yaxes(type="category")
    figure.update_xaxes(type="log", title=title, tickformat="~s", dtick=1)
    return _lines(apply_theme(figure, dark), rows)


def _lines(figure, rows):
    # The same place for a size in both figures, which stand side by side.
    figure.update_yaxes(tickfont={"size": 11}, dtick=1, autorange=False, range=[len(rows) - 0.5, -0.5])
    return figure.update_layout(height=120 + _ROW * len(rows), margin={"t": 48})


def table_parameters(table, dark=False):
    """Each size of an `ArchitectureTable` as a bar of its embeddings, encoder and output heads."""
    return parameters_by_part(table.rows, dark)


def table_flops_or_time(table, dark=False):
    """The operations of a pass of each size of an `ArchitectureTable`; the time of a pass where it was measured."""
    if table.seconds is None:
        return flops_or_time(table.rows, None, dark)
    times = {row.name: seconds for row, seconds in zip(table.rows, table.seconds) if seconds is not None}
    return flops_or_time(table.rows, times, dark)
