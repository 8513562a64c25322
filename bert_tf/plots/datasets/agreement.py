"""The figure of the rows of a file on which two models differ most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.ranked_bars import ranked_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.datasets.agreement import Agreement


_MOST_ROWS = 40  # drawn by name
_MEASURES = {
    "divergence, bits": "divergence",
    "difference of P(IsNext)": "is_next_difference",
    "difference of P(in order)": "in_order_difference",
    "mean difference of P(replaced)": "replaced_difference",
}


def most_different_rows(agreement: Agreement, dark: bool = False) -> go.Figure:
    """Bars for the rows that differ most: by their masks, without masks by the pair, otherwise by the replaced tokens.

    Args:
        agreement: `Agreement`.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    for unit, name in _MEASURES.items():
        values = ((result.row, getattr(result, name)) for result in agreement.rows)
        measured = [(row, value) for row, value in values if value is not None]
        if measured:
            break
    names = [f"{row.number}: {row.text_a:.40}" for row, _ in measured[:_MOST_ROWS]]
    return ranked_bars(names, [value for _, value in measured[:_MOST_ROWS]], unit, dark)
