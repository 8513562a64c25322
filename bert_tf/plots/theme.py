"""Colours and manners of all figures.

Both scales run from the page's own ground to full strength in even steps of lightness, in hues of blue and
yellow that every kind of colour vision tells apart; the dark one ends as cividis does.
"""

import functools

LIGHT_RAMP = ("#ffffff", "#dce8f7", "#abcbea", "#6fa5d8", "#3a78bd", "#1f4f94", "#0b2a5c")
DARK_RAMP = ("#171b22", "#1d2f57", "#37507a", "#5f6f83", "#8f8f7d", "#c6b565", "#ffe65c")

# Okabe and Ito's palette, without black: https://jfly.uni-koeln.de/color/
CATEGORIES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")

# One for each of several heads, from the same palette: what lies nearest to the page's ground comes last.
_HEADS = {
    False: ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9"),
    True: ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00"),
}
MAX_HEADS = 6

#: Parts of a template that figures here use.
_LAYOUT = ("xaxis", "yaxis", "scene", "title", "hovermode", "hoverlabel", "coloraxis", "autotypenumbers")
_KINDS = ("bar", "histogram", "scatter", "scatter3d")


def head_colours(dark=False):
    """Colours of up to ``MAX_HEADS`` heads drawn together, a list of "#rrggbb"."""
    return list(_HEADS[dark])


def ramp(dark=False):
    """The colour scale from 0 to 1 as a list of "#rrggbb"."""
    return list(DARK_RAMP if dark else LIGHT_RAMP)


def colourscale(dark=False):
    """The colour scale as Plotly takes it."""
    stops = ramp(dark)
    return [[index / (len(stops) - 1), colour] for index, colour in enumerate(stops)]


def apply_theme(figure, dark=False, height=None):
    """Give ``figure`` the common look, transparent so that it sits on any page; returns it."""
    ink, quiet = ("#e4e7ec", "#a9b0bd") if dark else ("#1d2330", "#5b6170")
    # In one piece: set one by one, or by `update_layout`, it takes three times as long, and a page draws up to four
    # figures at each press.
    layout = figure.layout.to_plotly_json()
    for name in {"xaxis", "yaxis", *(name for name in layout if name.startswith(("xaxis", "yaxis")))}:
        # Said outright: Streamlit would write them in a grey that is too faint to read well.
        axis = layout.get(name, {})
        title = axis.get("title", {})
        title = {**title, "font": {**title.get("font", {}), "color": quiet}}
        layout[name] = {**axis, "tickfont": {**axis.get("tickfont", {}), "color": quiet}, "title": title}
    legend = layout.get("legend", {})
    figure.layout = {
        **layout,
        "template": _template(dark),
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": ink, "size": 13},
        "margin": {"l": 8, "r": 8, "t": 32, "b": 8},
        "height": height,
        "hoverlabel": {"font": {"size": 13}},
        "colorway": CATEGORIES,
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#8a92a0", "activecolor": ink},
        "legend": {**legend, "font": {**legend.get("font", {}), "color": ink}},
    }
    return figure


@functools.cache
def _template(dark):
    """Of Plotly's own template what figures here use: it is checked and copied for each of them, and most of it is of
    maps and of kinds of traces that none has."""
    import plotly.io

    whole = plotly.io.templates["plotly_dark" if dark else "plotly_white"].to_plotly_json()
    layout = {name: whole["layout"][name] for name in _LAYOUT if name in whole["layout"]}
    for axis in ("xaxis", "yaxis"):
        # Margins make room for the labels; to look for any that stick out nevertheless takes longer than all other
        # drawing.
        layout[axis] = {**layout[axis], "ticklabeloverflow": "allow"}
    return {"layout": layout, "data": {kind: whole["data"][kind] for kind in _KINDS if kind in whole["data"]}}


def escape(text):
    """A token as Plotly shows it: its labels read a small part of HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unique_labels(tokens):
    """Tokens as labels of an axis, all different: Plotly would put equal ones on one line."""
    names, seen = [], {}
    for token in tokens:
        name = escape(token)
        seen[name] = seen.get(name, 0) + 1
        # The zero-width space tells the second "the" from the first without showing.
        names.append(name + "\u200b" * (seen[name] - 1))
    return names
