"""A diverging colour scale: orange for values that oppose, the page's background for 0, blue for values that support.

Every kind of colour vision distinguishes orange and blue.
"""

from __future__ import annotations

from bert_tf.plots.theme import evenly_spaced

_LIGHT = ("#8a3f00", "#c96a12", "#eda758", "#fbdcb8", "#ffffff", "#c9def4", "#7fb0e0", "#3272bd", "#0f3a7a")
_DARK = ("#ffb866", "#d98a35", "#96602c", "#4d382a", "#171b22", "#22344f", "#355f97", "#5b95dc", "#a4d0ff")


def diverging_ramp(dark: bool = False) -> list[str]:
    """The scale from -1 to 1 as a list of "#rrggbb"."""
    return list(_DARK if dark else _LIGHT)


def diverging_scale(dark: bool = False) -> list[list]:
    """The scale as a Plotly ``colorscale``, pairs of a share and a colour; the ends of the figure's range must have
    the same distance from 0."""
    return evenly_spaced(diverging_ramp(dark))
