"""The line that chooses the tokens that a page about attention draws."""

from bert_tf.plots import select


def drawn_tokens(view, trace, detail):
    """The line that chooses the tokens that are drawn."""
    filters = "".join(
        f", {name}={value!r}"
        for name, value, default in (
            ("selection", view.selection, "all"),
            ("special", view.special, True),
            ("punctuation", view.punctuation, True),
        )
        if value != default
    )
    window = ""
    if select(trace, view.selection, view.special, view.punctuation) != detail:
        window = f".window({view.start}, {max(len(detail.rows), len(detail.columns))})"
    return f"selection = select(trace{filters}){window}  # the tokens that are drawn"
