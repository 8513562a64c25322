"""What a concept does to an answer, layer by layer."""

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.representations.logit_lens import state_names
from bert_tf.plots.theme import apply_theme, head_colours


def concept_figure(scores, chance, is_significant, title, dark=False, height=340):
    """Shares after each layer, of a concept's runs and of chance, with their standard deviations as bars.

    Args:
        scores, chance: float [L+1, S]. is_significant: bool [L+1], where the concept's point is filled.
        title: what the shares are. dark: for a dark page. height: in pixels.
    """
    figure, names = go.Figure(), state_names(len(scores))
    for index, (name, runs, symbol) in enumerate((("the concept", scores, "circle"), ("chance", chance, "diamond"))):
        runs, colour = np.asarray(runs, float), head_colours(dark)[index]
        full = np.asarray(is_significant) if index == 0 else np.zeros(len(runs), bool)
        figure.add_trace(
            go.Scatter(
                x=names,
                y=runs.mean(axis=1),
                error_y={"type": "data", "array": runs.std(axis=1, ddof=1), "thickness": 1, "width": 3},
                name=name,
                mode="lines+markers",
                line={"color": colour, "dash": "dot" if index else "solid"},
                marker={"symbol": [symbol if one else f"{symbol}-open" for one in full], "size": 9},
                hovertemplate=f"after layer %{{x}}: %{{y:.1%}} ± %{{error_y.array:.1%}}<extra>{name}</extra>",
            )
        )
    figure.layout.xaxis = dict(title="after layer", type="category", showgrid=False)
    figure.layout.yaxis = dict(title=title, tickformat=".0%", range=[-0.04, 1.04])
    figure.layout.legend = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}
    return apply_theme(figure, dark, height)
