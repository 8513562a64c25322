"""Two models on the rows of a file, drawn."""

from bert_tf.plots.interventions.ablation import ranked_bars

_MOST_ROWS = 40  # drawn by name
_MEASURES = {
    "divergence, bits": "divergence",
    "difference of P(IsNext)": "is_next_difference",
    "difference of P(in order)": "in_order_difference",
    "mean difference of P(replaced)": "replaced_difference",
}


def most_different_rows(agreement, dark=False):
    """The rows that differ most: by their masks; without masks by the pair, else by the replaced tokens.

    Args:
        agreement: an `Agreement`. dark: for a dark page.
    """
    for unit, name in _MEASURES.items():
        measured = [(one.row, getattr(one, name)) for one in agreement.rows if getattr(one, name) is not None]
        if measured:
            break
    names = [f"{row.number}: {row.text_a:.40}" for row, _ in measured[:_MOST_ROWS]]
    return ranked_bars(names, [value for _, value in measured[:_MOST_ROWS]], unit, dark)
