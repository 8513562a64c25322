"""Colours and layout of all figures.

Both colour scales run from the page's background to a strong colour in even steps of lightness. Their hues, blue and
yellow, can be distinguished by every kind of colour vision; the scale for dark pages ends like cividis.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go

LIGHT_RAMP = ("#ffffff", "#dce8f7", "#abcbea", "#6fa5d8", "#3a78bd", "#1f4f94", "#0b2a5c")
DARK_RAMP = ("#171b22", "#1d2f57", "#37507a", "#5f6f83", "#8f8f7d", "#c6b565", "#ffe65c")

# Okabe and Ito's palette, without black: https://jfly.uni-koeln.de/color/
CATEGORIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")

# Colours of several heads, from the same palette; the colour nearest to the page's background is last.
_HEADS = {
    False: ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"),
    True: ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00"),
}
MAX_HEADS = 6

#: A legend in one line above the plot.
LEGEND_ABOVE = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}
#: The colour bar of a heatmap or of points.
COLOUR_BAR = {"thickness": 8, "outlinewidth": 0}

#: The parts of a Plotly template that these figures use; those with three dimensions use "scene" too.
_LAYOUT = ("xaxis", "yaxis", "title", "hovermode", "hoverlabel", "coloraxis", "autotypenumbers")
_KINDS = frozenset({"bar", "histogram", "scatter", "scatter3d"})


def head_colours(dark: bool = False) -> list[str]:
    """Colours of up to ``MAX_HEADS`` heads in one figure, a list of "#rrggbb"."""
    return list(_HEADS[dark])


def ramp(dark: bool = False) -> list[str]:
    """The colour scale from 0 to 1 as a list of "#rrggbb"."""
    return list(DARK_RAMP if dark else LIGHT_RAMP)


def colourscale(dark: bool = False) -> list[list]:
    """The colour scale as a Plotly ``colorscale``, pairs of a share and a colour."""
    return evenly_spaced(ramp(dark))


def evenly_spaced(stops: Sequence[str]) -> list[list]:
    """Colours as a Plotly ``colorscale`` with the same distance between any two neighbours."""
    return [[index / (len(stops) - 1), colour] for index, colour in enumerate(stops)]


def text_colours(scale: Iterable, places: Iterable[float]) -> list[str]:
    """Black or white for each place of a colour scale, whichever has more contrast with its colour.

    Args:
        scale: pairs of a place from 0 to 1 and its colour, as `colourscale` returns them.
        places: from 0 to 1.
    """
    from plotly.colors import sample_colorscale, unlabel_rgb

    colours = []
    for colour in sample_colorscale([list(stop) for stop in scale], list(places)):
        channels = [channel / 255 for channel in unlabel_rgb(colour)]
        # The relative luminance of WCAG 2.2; 0.179 has the same contrast to black and to white.
        red, green, blue = (
            channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels
        )
        colours.append("#000000" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "#ffffff")
    return colours


def apply_theme(figure: go.Figure, dark: bool = False, height: int | None = None, **more: dict[str, Any]) -> go.Figure:
    """Set the colours, fonts and margins that all figures share; the background is transparent.

    Args:
        figure: plotly.graph_objects.Figure. Its layout is changed.
        dark: bool. Whether the page is dark.
        height: int or None. In pixels; None leaves it to Plotly.
        more: dicts. Other parts of the layout, such as ``xaxis``, which are set with the theme in one assignment.

    Returns:
        ``figure``.
    """
    text_colour, axis_colour = ("#e4e7ec", "#a9b0bd") if dark else ("#1d2330", "#5b6170")
    # The layout is set in one assignment: single assignments, or `update_layout`, take three times as long, and a page
    # draws up to four figures for each click.
    layout: dict[str, Any] = {**figure.layout.to_plotly_json(), **more}
    for name in {"xaxis", "yaxis", *(name for name in layout if name.startswith(("xaxis", "yaxis")))}:
        # Without a colour of the axis Streamlit would set a grey with too little contrast.
        axis = layout.get(name, {})
        title = axis.get("title", {})
        title = {**title, "font": {**title.get("font", {}), "color": axis_colour}}
        layout[name] = {**axis, "tickfont": {**axis.get("tickfont", {}), "color": axis_colour}, "title": title}
    legend = layout.get("legend", {})
    figure.layout = {
        **layout,
        "template": _template(dark, _KINDS.intersection(trace.type for trace in figure.data)),
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": text_colour, "size": 13},
        "margin": {"l": 8, "r": 8, "t": 32, "b": 8},
        "height": height,
        "hoverlabel": {"font": {"size": 13}},
        "colorway": CATEGORIES,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#8a92a0", "activecolor": text_colour},
        "legend": {**legend, "font": {**legend.get("font", {}), "color": text_colour}},
    }
    return figure


@functools.cache
def _template(dark: bool, kinds: frozenset[str]) -> dict[str, Any]:
    """The parts of Plotly's template for a figure of these kinds of traces. Plotly validates and copies the template
    for each figure, and most of it is for other kinds."""
    import plotly.io

    template = plotly.io.templates["plotly_dark" if dark else "plotly_white"].to_plotly_json()
    names = (*_LAYOUT, "scene") if "scatter3d" in kinds else _LAYOUT
    layout = {name: template["layout"][name] for name in names if name in template["layout"]}
    for axis in ("xaxis", "yaxis"):
        # The margins make room for the labels. Plotly's search for labels that overflow takes longer than all other
        # drawing.
        layout[axis] = {**layout[axis], "ticklabeloverflow": "allow"}
    return {
        "layout": layout,
        "data": {kind: template["data"][kind] for kind in sorted(kinds) if kind in template["data"]},
    }


def titled(figure: go.Figure, title: str) -> go.Figure:
    """Set a figure's title, which is escaped; returns ``figure``."""
    return figure.update_layout(title={"text": escape(title), "font": {"size": 15}}, margin={"t": 60})


def escape(text: str) -> str:
    """A text with escaped HTML characters, because Plotly's labels read a subset of HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unique_labels(tokens: Iterable[str]) -> list[str]:
    """Tokens as distinct labels of an axis: Plotly would draw equal labels at the same place."""
    labels: list[str] = []
    counts: dict[str, int] = {}
    for token in tokens:
        label = escape(token)
        counts[label] = counts.get(label, 0) + 1
        # A zero-width space distinguishes the second "the" from the first and is invisible.
        labels.append(label + "\u200b" * (counts[label] - 1))
    return labels
