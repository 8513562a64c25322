"""A figure for each kind of ``python -m bert_tf explain``, drawn from the same record that ``--json`` prints."""

from bert_tf.plots import (
    explained_files,
    explained_models,
    explained_pairs,
)
from bert_tf.plots.theme import escape

_KINDS = {
    **explained_pairs.KINDS,
    **explained_files.KINDS,
    **explained_models.KINDS,
}


def figure_of(record, dark=False):
    """The figure of an ``explain`` record.

    Args:
        record: dict with ``kind`` and what that kind holds. dark: for a dark page.

    Returns:
        plotly.graph_objects.Figure.

    Raises:
        ValueError: a kind that is not known.
    """
    if record.get("kind") not in _KINDS:
        raise ValueError(f"There is no figure for {record.get('kind')!r}: known are {', '.join(_KINDS)}.")
    return _KINDS[record["kind"]](record, dark)


def page_of(record):
    """The figure as an HTML page of its own that needs no network."""
    figure = figure_of(record)
    about = " · ".join(record[name] for name in ("kind", "model", "method") if name in record)
    figure.update_layout(title={"text": escape(about), "font": {"size": 15}, "x": 0.01}, margin={"t": 80})
    figure.update_layout(paper_bgcolor="#ffffff")
    return figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False})
