"""The download menus: numbers as CSV, JSON and NumPy files, figures as HTML, SVG and PNG."""

import csv
import functools
import io
import json
import math
import numbers

import numpy as np
import streamlit as st

from ui.elements import components


def save(name, result, about=None):
    """Draw the download menu of a result: its table as CSV, its record as JSON, its arrays as NPZ, its figures.

    The NPZ file of a result without arrays has the columns of its table.

    Args:
        name: of the files, without an ending.
        result: a ``bert_tf.results.Result``.
        about: dict of entries to add to the JSON record, such as the model's name.
    """
    with st.popover("Save", icon=":material/download:", type="tertiary"):
        with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
            _button("CSV", f"{name}.csv", "text/csv", lambda: frame_csv(result.to_frame()))
            _button(
                "JSON", f"{name}.json", "application/json", lambda: record_json({**(about or {}), **result.to_dict()})
            )
            _button("Arrays (NPZ)", f"{name}.npz", "application/octet-stream", lambda: npz(result_arrays(result)))
        for title in result.figures:
            file = name if len(result.figures) == 1 else f"{name}-{title}"
            _figure(title.replace("-", " ").capitalize(), file, functools.partial(result.figure, title))


def result_arrays(result):
    """The arrays of a result, or the columns of its table if it has no arrays: dict of arrays."""
    if arrays := result.to_arrays():
        return arrays
    table = result.to_frame()
    return columns(table.columns, _frame_rows(table))


def frame_csv(table):
    """A pandas table as CSV text; see `table_csv`."""
    return table_csv(table.columns, _frame_rows(table))


def _frame_rows(table):
    """The rows of a pandas table, None for missing values."""
    return table.astype(object).where(table.notna(), None).itertuples(index=False)


def _figure(title, name, make):
    def on_white():
        return make().update_layout(paper_bgcolor="#ffffff")

    config = plot_config(name)
    with st.container(horizontal_alignment="center"):
        _button(f"{title} (HTML)", f"{name}.html", "text/html", lambda: figure_html(on_white(), config))
    components.picture(f"c_save_{name}", title, name, on_white)


def figure_html(figure, config=None):
    """A figure as an HTML page that needs no network; ``config``: Plotly's settings."""
    return figure.to_html(include_plotlyjs=True, full_html=True, config=config)


def record_json(data):
    """A record as JSON text; arrays in it become lists."""
    return json.dumps(data, ensure_ascii=False, indent=2, default=_listed)


def _listed(array):
    array = np.asarray(array)
    # JSON has neither NaN nor infinity.
    return (np.where(np.isfinite(array), array, None) if array.dtype.kind == "f" else array).tolist()


def npz(arrays):
    """Arrays as the bytes of a compressed NumPy file."""
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def columns(header, rows):
    """The columns of a table as a dict of arrays: numbers, with NaN for empty cells, or text."""
    return {name: _array(cells) for name, cells in zip(header, zip(*rows))}


def _array(cells):
    filled = [math.nan if cell is None or cell == "" else cell for cell in cells]
    if all(isinstance(cell, numbers.Real) for cell in filled):
        return np.array(filled)
    return np.array(["" if cell is None else str(cell) for cell in cells])


def table_csv(header, rows):
    """A table as CSV text; its numbers have six digits, its text is safe for spreadsheets (see ``safe_cell``)."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(map(_cell, header))
    for row in rows:
        writer.writerow(map(_cell, row))
    return out.getvalue()


def _cell(value):
    if isinstance(value, str):
        return safe_cell(value)
    if isinstance(value, (float, np.floating)) and math.isnan(value):
        return ""
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else value


def safe_cell(text):
    """The text of a cell, with an apostrophe in front if a spreadsheet would read it as a formula."""
    # Spreadsheets skip white space before a formula, and some read full-width signs as the usual ones.
    is_formula = text.lstrip()[:1] in tuple("=+-@＝＋－＠") or text[:1] in ("\t", "\r", "\n")
    return "'" + text if is_formula and len(text) > 1 else text


def plot_config(name):
    """Plotly's settings for a figure; its camera button saves ``name`` as PNG."""
    return {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"format": "png", "filename": name, "scale": 2},
    }


def _button(label, name, kind, make):
    st.download_button(
        label,
        make,
        file_name=name,
        mime=kind,
        on_click="ignore",
        key=f"w_save_{name}",
        type="tertiary",
    )
