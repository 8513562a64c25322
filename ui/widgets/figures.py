"""Plotly figures with a description for screen readers, and their numbers as a table for the keyboard."""

import numpy as np
import streamlit as st

from ui.elements.component_registry import browser_value, register
from ui.widgets.formatting import true_minus

_FIGURE = register("figure")


def show(what, figure, *, key, **options):
    """Draw a Plotly figure with its description, its colour scale and a table of its numbers.

    Args:
        what: name of the figure, for screen readers.
        figure: a Plotly figure.
        key: of the chart. options: keyword arguments of ``st.plotly_chart``.

    Returns:
        the return value of ``st.plotly_chart``.
    """
    from bert_tf.plots.description import description
    from bert_tf.plots.margins import detach_colorbar, fix_margins

    description_key = f"c_{key}_said"
    scale = detach_colorbar(figure)
    fix_margins(figure)
    options["config"] = _without_camera(options.get("config") or {})
    with st.container(key=f"figure_{key}", gap=None):
        drawn = st.plotly_chart(_with_readable_texts(figure), key=key, **options)
        data = {
            "what": what,
            "said": true_minus(description(figure)),
            "scale": scale and scale | {"marks": [(at, true_minus(text)) for at, text in scale["marks"]]},
            "table": _table(figure) if browser_value(description_key, "open") else None,
        }
        _FIGURE(key=description_key, data=data, on_open_change=lambda: None)
    return drawn


def _with_readable_texts(figure):
    """The figure with the texts of a map's cells in black or white, which has more contrast to the cell.

    Plotly would take a grey for black, which is hard to read on the colours in the middle of a scale.
    """
    maps = [trace for trace in figure.data if trace.type == "heatmap" and trace.texttemplate == "%{z:.2f}"]
    if len(maps) != 1 or len(figure.data) != 1 or isinstance(maps[0].colorscale, str):
        return figure
    from bert_tf.plots.theme import text_colours

    values = np.asarray(maps[0].z, np.float64)
    drawn = type(figure)(figure)
    drawn.data[0].texttemplate = None
    places = [place for place in np.ndindex(*values.shape) if np.isfinite(values[place])]
    low, high = maps[0].zmin, maps[0].zmax
    on_scale = [0.0 if low is None or low == high else (values[place] - low) / (high - low) for place in places]
    drawn.add_scatter(
        x=[maps[0].x[column] for _, column in places],
        y=[maps[0].y[row] for row, _ in places],
        text=[true_minus(f"{values[place]:.2f}") for place in places],
        mode="text",
        textfont={"color": text_colours(maps[0].colorscale, np.clip(on_scale, 0, 1))},
        hoverinfo="skip",
        showlegend=False,
    )
    return drawn


def _without_camera(config):
    """Plotly's settings without the camera button.

    Its picture would not say the model, layer, head and text, and have no colour scale where that is drawn beside the
    figure; the files of the download menu have all of them.
    """
    return {**config, "modeBarButtonsToRemove": [*config.get("modeBarButtonsToRemove", ()), "toImage"]}


def _table(figure):
    from bert_tf.plots.description import table

    header, rows, left_out = table(figure)
    cut = [f"{number:,} more {name}" for number, name in zip(left_out, ("rows", "columns")) if number]
    written = [[true_minus(text) for text in row] for row in rows]
    return {"header": header, "rows": written, "cut": f"Left out here: {' and '.join(cut)}." if cut else ""}
