"""Two models beside each other."""

import plotly.graph_objects as go

from bert_tf.plots.theme import CATEGORIES, colourscale, dress, escape


def depth_profile(profiles, name, dark=False):
    """A number per layer of several models over relative depth, so that 12 layers lie over 24.

    Args:
        profiles: dict from model name to float [L].
        name: what the number is, for the axis.
        dark: for a dark page.
    """
    figure = go.Figure()
    for index, (model, values) in enumerate(profiles.items()):
        layers = len(values)
        figure.add_trace(
            go.Scatter(
                x=[(layer + 1) / layers for layer in range(layers)],
                y=[float(value) for value in values],
                name=model,
                mode="lines+markers",
                line={"color": CATEGORIES[index], "dash": ("solid", "dot")[index % 2]},
                marker={"symbol": ("circle", "diamond")[index % 2], "size": 8},
                customdata=[layer + 1 for layer in range(layers)],
                hovertemplate="layer %{customdata}: %{y:.3f}<extra>" + model + "</extra>",
            )
        )
    figure.update_xaxes(title="relative depth", tickformat=".0%", range=[0, 1.04])
    figure.update_yaxes(title=name, rangemode="tozero")
    figure.update_layout(legend={"orientation": "h", "y": 1.12, "x": 0})
    return dress(figure, dark, height=300)


def likeness_map(values, name_a, name_b, dark=False):
    """How alike each layer of one model is to each of another, from 0 to 1.

    Args:
        values: float [L_a + 1, L_b + 1], NaN where it is not defined; state 0 are the embeddings.
        name_a, name_b: the models.
        dark: for a dark page.
    """
    rows, columns = (["in", *map(str, range(1, count))] for count in values.shape)
    figure = go.Figure(
        go.Heatmap(
            z=values,
            x=columns,
            y=rows,
            zmin=0,
            zmax=1,
            colorscale=colourscale(dark),
            hoverongaps=False,
            hovertemplate="layer %{y} and layer %{x}<br>CKA %{z:.3f}<extra></extra>",
            colorbar={"thickness": 8, "outlinewidth": 0, "len": 0.9, "tickformat": ".1f", "xpad": 4},
        )
    )
    common = {"type": "category", "showgrid": False, "ticks": ""}
    figure.update_yaxes(title=f"layer of {escape(name_a)}", **common)
    figure.update_xaxes(title=f"layer of {escape(name_b)}", **common)
    return dress(figure, dark, height=150 + 26 * max(len(rows), 8))
