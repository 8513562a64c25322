"""How a fine-tuning went, and what the model confuses."""

import plotly.graph_objects as go
from plotly.colors import sample_colorscale, unlabel_rgb
from plotly.subplots import make_subplots

from bert_tf.plots.theme import CATEGORIES, apply_theme, colourscale, escape, head_colours


def learning_curve(records, rounds, metric, dark=False):
    """Training loss over the updates, and beside it the dev score of every round.

    Args:
        records: list of dicts with "step" and "loss" (`run/metrics.jsonl`). rounds: list of dicts with
            "step", "dev" and "best" (`run/rounds.json`). metric: name of the score. dark: for a dark page.
    """
    colours = head_colours(dark)
    measured = [one for one in rounds if metric in one["dev"]]
    figure = make_subplots(rows=1, cols=2 if measured else 1, horizontal_spacing=0.12)
    figure.add_trace(
        go.Scatter(
            x=[one["step"] for one in records],
            y=[one["loss"] for one in records],
            mode="lines",
            name="training loss",
            line={"color": colours[0]},
        ),
        1,
        1,
    )
    figure.update_yaxes(title="training loss", rangemode="tozero", row=1, col=1)
    if measured:
        figure.add_trace(
            go.Scatter(
                x=[one["step"] for one in measured],
                y=[one["dev"][metric] for one in measured],
                mode="lines+markers",
                name=f"dev {metric}",
                line={"color": colours[1]},
                marker={"size": 8},
            ),
            1,
            2,
        )
        figure.update_yaxes(title=f"dev {metric}", row=1, col=2)
    figure.update_xaxes(title="updates")
    figure.update_layout(showlegend=False)
    return apply_theme(figure, dark, height=300)


def confusion_matrix(labels, counts, dark=False):
    """How often each true label was given each label.

    Args:
        labels: K names. counts: [K][K], a row a true label. dark: for a dark page.
    """
    names = [escape(label) for label in labels]
    totals = [max(1, sum(row)) for row in counts]
    shares = [[count / total for count in row] for row, total in zip(counts, totals)]
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=names,
            y=names,
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            showscale=False,
            text=counts,
            hovertemplate="true %{y}, found %{x}: %{text} (%{z:.1%})<extra></extra>",
        )
    )
    if len(labels) <= 20:
        # Written over the cells: the greys that Plotly itself takes are hard to read on the middle of a dark page's
        # scale.
        figure.layout.annotations = [
            {"x": x, "y": y, "text": str(count), "showarrow": False, "font": {"color": _ink(share, dark)}}
            for y, line, parts in zip(names, counts, shares)
            for x, count, share in zip(names, line, parts)
        ]
    figure.update_xaxes(title="found", side="bottom", type="category")
    figure.update_yaxes(title="true", autorange="reversed", type="category")
    return apply_theme(figure, dark, height=max(260, 60 + 26 * len(labels)))


def _ink(share, dark):
    """Black or white, whichever stands out more from the colour of a share (WCAG 2.2's relative luminance)."""
    (colour,) = sample_colorscale(colourscale(dark), [share])
    parts = [part / 255 for part in unlabel_rgb(colour)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return "#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff"


def label_bars(rows, dark=False):
    """F1 of each label as bars.

    Args: rows: list of dicts with "label", "f1" and how many there are, "examples" or "support". dark: for a dark page.
    """
    figure = go.Figure(
        go.Bar(
            x=[row["f1"] for row in rows],
            y=[escape(str(row["label"])) for row in rows],
            orientation="h",
            marker={"color": CATEGORIES[0]},
            customdata=[row.get("examples", row.get("support")) for row in rows],
            hovertemplate="%{y}: F1 %{x:.3f} over %{customdata} examples<extra></extra>",
        )
    )
    figure.update_xaxes(title="F1", range=[0, 1])
    figure.update_yaxes(autorange="reversed", type="category")
    return apply_theme(figure, dark, height=max(200, 60 + 24 * len(rows)))
