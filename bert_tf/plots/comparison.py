"""Two models beside each other."""

import plotly.graph_objects as go

from bert_tf.plots.theme import CATEGORIES, dress


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
