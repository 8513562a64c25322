"""The menu "Save" of a page: numbers as CSV, JSON and NumPy files, figures as HTML, SVG and PNG.

A page calls ``save`` with each of its results and ``save_drawing`` with each drawing of the components ``grid`` and
``lines``; `ui.shell.page_foot` then draws one menu of them below the page.
"""

import csv
import functools
import io
import json
import math
import numbers
import re
import textwrap

import numpy as np
import streamlit as st

from bert_tf.plots.theme import escape
from ui.elements import components
from ui.session import state
from ui.widgets.formatting import title

_RESULTS = "_saved_results"  # in the session: dict from a name to (result, entries of its JSON record, its texts)
_DRAWINGS = "_saved_drawings"  # in the session: dict from a name to (title, formats)
_LONGEST_TEXT = 160  # characters of a text in a caption
_LINE = 110  # characters of a line of a caption


def save(name, result, about=None, texts=(), trace=None):
    """Offer a result in the page's menu: its table as CSV, its record as JSON, its arrays as NPZ, its figures.

    The NPZ file of a result without arrays has the columns of its table.

    Args:
        name: of the files, without an ending.
        result: a ``bert_tf.results.Result``.
        about: dict of entries to add to the JSON record. Figures name its "model" or "models"; without them those of
            the result, or else the view's.
        texts: the texts that were read, for the figures, see `caption`.
        trace: the ``Trace`` that the result is about, if it is about one; then the model and the texts are its own.
    """
    about = dict(about or {})
    if trace is not None:
        about, texts = {"model": trace.model, **about}, texts_of(trace)
    st.session_state.setdefault(_RESULTS, {})[name] = result, about, texts


def save_drawing(title, name, formats=("svg", "png", "html")):
    """Offer a drawing of the page in its menu, as it looks now.

    Args:
        title: of the drawing. name: the name that the component ``grid`` or ``lines`` saves it under.
        formats: those it can be saved in.
    """
    st.session_state.setdefault(_DRAWINGS, {})[name] = title, formats


def take():
    """The results and drawings since the last call: (dict, dict), for `draw`; both empty if there are none."""
    results, drawings = (st.session_state.pop(name, {}) for name in (_RESULTS, _DRAWINGS))
    return results, drawings


def draw(results, drawings, key="w_save_menu_here"):
    """Draw the menu of what `take` returned; its buttons are made when a visitor opens it.

    A page whose results come in a fragment calls it at the end of the fragment, which may run alone.

    Args:
        results, drawings: as `take` returns them; if both are empty, nothing is drawn.
        key: of the menu.
    """
    if not results and not drawings:
        return
    menu = st.popover("Save", icon=":material/download:", type="tertiary", key=key, on_change="rerun")
    if not menu.open:
        return
    with menu:
        for name, (result, about, texts) in results.items():
            if len(results) > 1:
                st.markdown(f"**{name.replace('-', ' ').capitalize()}**")
            _files(name, result, about, texts)
        if drawings and results:
            st.markdown("**As drawn on the page**")
        for name, (drawing, formats) in drawings.items():
            components.drawing_files(f"c_save_drawing_{name}", drawing, name, formats)


def _files(name, result, about, texts):
    with st.container(horizontal=True, horizontal_alignment="distribute", gap="small"):
        _button("CSV", f"{name}.csv", "text/csv", lambda: frame_csv(result.to_frame()))
        _button("JSON", f"{name}.json", "application/json", lambda: record_json({**about, **result.to_dict()}))
        _button("Arrays (NPZ)", f"{name}.npz", "application/octet-stream", lambda: npz(result_arrays(result)))
    shows = shown(name, result, about, texts)
    for figure in result.figures:
        file = name if len(result.figures) == 1 else f"{name}-{figure}"
        _figure(figure.replace("-", " ").capitalize(), file, functools.partial(result.figure, figure), shows)


def texts_of(trace):
    """The texts that a figure about a ``Trace`` names; text B is None if none was read."""
    return trace.text_a, trace.text_b


def shown(name, result, about, texts):
    """The `caption` of the figures of a result that was saved with these arguments."""
    models = about.get("model") or about.get("models") or _models(result)
    # Files with the name of a training have no layer or head in it, whatever the name is.
    return caption("" if name == models else name, models, texts)


def _models(result):
    """The names of a result's models: a tuple, empty if the result does not tell."""
    trace = getattr(result, "trace", None)
    models = getattr(result, "models", None) or (getattr(result, "model", None) or getattr(trace, "model", None),)
    # A table of models holds records with their names.
    return tuple(name for name in (getattr(one, "model", one) for one in models) if isinstance(name, str))


def trace_caption(name, trace):
    """The `caption` of a figure about one ``Trace``."""
    return caption(name, trace.model, texts_of(trace))


def caption(name, models="", texts=()):
    """What a saved figure shows, in one line: the model, layer and head, and the texts.

    Args:
        name: of the file, such as "layer-11-head-8": layers and heads are read from it.
        models: name of the model, or names of several; "" for the view's model.
        texts: those that were read, such as (text A, text B); () for those of a file. Empty ones and None are left out.
    """
    models = (models,) if isinstance(models, str) and models else tuple(models) or (state.view().model,)
    parts = [" and ".join(dict.fromkeys(title(model) for model in models))]
    heads = re.findall(r"layer-(\d+)-head-(\d+)", name) or re.findall(r"-(\d+)\.(\d+)", name)
    parts += [f"layer {layer}, head {head}" for layer, head in heads]
    if not heads and (layer := re.search(r"layer-(\d+)(-mean)?", name)):
        parts.append(f"layer {layer[1]}" + (", mean of its heads" if layer[2] else ""))
    parts += [f"“{textwrap.shorten(text, _LONGEST_TEXT, placeholder=' …')}”" for text in texts if _is_visible(text)]
    return " · ".join(parts)


def _is_visible(text):
    return any(letter.isprintable() and not letter.isspace() for letter in text or "")


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


def _figure(title, name, make, shows):
    def on_white():
        return captioned(make().update_layout(paper_bgcolor="#ffffff"), shows)

    config = plot_config(name)
    with st.container(horizontal_alignment="center"):
        _button(f"{title} (HTML)", f"{name}.html", "text/html", lambda: figure_html(on_white(), config))
    components.picture(f"c_save_{name}", title, name, on_white)


def captioned(figure, shows):
    """A Plotly figure with a line above it that says what it shows; the figure's own title stays."""
    lines = [escape(line) for line in textwrap.wrap(shows, _LINE)]
    own = figure.layout.title.text
    return figure.update_layout(
        title={
            "text": "<br>".join([*([own] if own else []), *lines]),
            "font": {"size": 12},
            "x": 0.01,
            "xanchor": "left",
            "y": 0.98,
            "pad": {"t": 8},
            "yref": "container",
            "yanchor": "top",
            "automargin": True,
        }
    )


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
