"""A colour scale with a middle: what speaks against, nothing, what speaks for.

Orange and blue, told apart by every kind of colour vision; the middle is the page's own ground.
"""

_LIGHT = ("#8a3f00", "#c96a12", "#eda758", "#fbdcb8", "#ffffff", "#c9def4", "#7fb0e0", "#3272bd", "#0f3a7a")
_DARK = ("#ffb866", "#d98a35", "#96602c", "#4d382a", "#171b22", "#22344f", "#355f97", "#5b95dc", "#a4d0ff")


def diverging_ramp(dark=False):
    """The scale from -1 to 1 as a list of "#rrggbb"."""
    return list(_DARK if dark else _LIGHT)


def diverging_scale(dark=False):
    """The scale as Plotly takes it; give the figure ends that lie equally far from 0."""
    stops = diverging_ramp(dark)
    return [[index / (len(stops) - 1), colour] for index, colour in enumerate(stops)]
