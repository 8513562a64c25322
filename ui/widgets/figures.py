"""Plotly figures with a description for screen readers, and their numbers as a table for the keyboard."""

import streamlit as st

from ui.elements.component_registry import browser_value, register

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
        drawn = st.plotly_chart(figure, key=key, **options)
        data = {
            "what": what,
            "said": description(figure),
            "scale": scale,
            "table": _table(figure) if browser_value(description_key, "open") else None,
        }
        _FIGURE(key=description_key, data=data, on_open_change=lambda: None)
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
    return {"header": header, "rows": rows, "cut": f"Left out here: {' and '.join(cut)}." if cut else ""}
