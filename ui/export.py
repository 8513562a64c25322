"""Saving what a page shows: data as CSV and JSON, figures as HTML."""

import csv
import dataclasses
import io
import json

import numpy as np
import streamlit as st

PICTURE = "w_picture_format"


def predictions_csv(trace, answers):
    """The predictions as CSV text, one line for each guess."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["model", "position", "original", "original_rank", "rank", "token", "probability"])
    for answer in answers:
        for rank, one in enumerate(answer.predictions, start=1):
            writer.writerow(
                [
                    trace.model,
                    answer.position,
                    safe_cell(answer.original),
                    answer.original_rank,
                    rank,
                    safe_cell(one.token),
                    f"{one.probability:.6g}",
                ]
            )
    return out.getvalue()


def predictions_json(trace, answers):
    """The predictions as JSON text, in the form of ``python -m bert_tf predict --json``."""
    from bert_tf.explain import Answer

    answer = Answer(trace.model, trace.tokens, tuple(answers), trace.nsp, trace.truncated, trace.sop)
    return json.dumps(answer.to_json(), ensure_ascii=False, indent=2)


def matrix_csv(rows, columns, weights):
    """One head as CSV text: a line for each looking token, a column for each token it looks at."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["", *map(safe_cell, columns)])
    for token, line in zip(rows, weights):
        writer.writerow([safe_cell(token), *(f"{value:.5g}" for value in line)])
    return out.getvalue()


def safe_cell(text):
    """Text that no spreadsheet takes for a formula."""
    return "'" + text if text and text[0] in "=+-@\t\r" and len(text) > 1 else text


def figure_html(figure, config=None):
    """A figure as a page of its own that needs no network; ``config`` as Plotly takes it."""
    return figure.to_html(include_plotlyjs=True, full_html=True, config=config)


def predictions(trace, answers):
    """The download menu of the Predict page. Files are made when asked for, not at every run."""
    from bert_tf import plots

    with st.popover("Save", icon=":material/download:", type="tertiary"):
        _button("CSV", "predictions.csv", "text/csv", lambda: predictions_csv(trace, answers))
        _button("JSON", "predictions.json", "application/json", lambda: predictions_json(trace, answers))
        _button(
            "Figure (HTML)", "predictions.html", "text/html", lambda: figure_html(plots.predictions(answers))
        )


def attention(trace, weights, selection, name):
    """The download menu of the Attention page."""
    from bert_tf import plots
    from bert_tf.plots import pooled

    tokens = trace.tokens
    rows, columns = ([tokens[place] for place in places] for places in (selection.rows, selection.columns))

    def cut():
        return pooled(weights, selection, len(tokens))

    def as_json():
        return json.dumps(
            {
                "model": trace.model,
                "head": name,
                "rows": rows,
                "columns": columns,
                "weights": [[round(float(value), 6) for value in line] for line in cut()],
            },
            ensure_ascii=False,
        )

    with st.popover("Save", icon=":material/download:", type="tertiary"):
        st.caption("The head as data")
        _button("CSV", f"{name}.csv", "text/csv", lambda: matrix_csv(rows, columns, cut()))
        _button("JSON", f"{name}.json", "application/json", as_json)
        st.caption("The figures")
        _button(
            "Heatmap (HTML)",
            f"{name}.html",
            "text/html",
            lambda: figure_html(plots.heatmap(trace, weights, selection, title=name)),
        )
        _button(
            "All heads (HTML)",
            "all-heads.html",
            "text/html",
            lambda: figure_html(plots.overview(trace, selection)),
        )
        st.radio(
            "The camera above a heatmap saves",
            ["png", "svg"],
            format_func=str.upper,
            horizontal=True,
            key=PICTURE,
            persist_state="session",
        )


def comparison(found, traces):
    """The download menu of the Compare page."""

    def as_csv():
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(
            [
                "model_a",
                "model_b",
                "masked",
                "position_a",
                "position_b",
                "top_a",
                "top_b",
                "overlap",
                "jensen_shannon_bits",
            ]
        )
        for mask in found.masks:
            words = (
                traces[0].original_tokens[mask.position_a],
                mask.predictions_a[0].token,
                mask.predictions_b[0].token,
            )
            masked, top_a, top_b = map(safe_cell, words)
            writer.writerow(
                [
                    found.model_a,
                    found.model_b,
                    masked,
                    mask.position_a,
                    mask.position_b,
                    top_a,
                    top_b,
                    f"{mask.overlap:.4f}",
                    f"{mask.divergence:.6f}",
                ]
            )
        return out.getvalue()

    with st.popover("Save", icon=":material/download:", type="tertiary"):
        _button("CSV", "comparison.csv", "text/csv", as_csv)
        _button(
            "JSON",
            "comparison.json",
            "application/json",
            lambda: json.dumps(dataclasses.asdict(found), ensure_ascii=False, indent=2),
        )


def menu(name, header, rows, data, figure=None, arrays=None, camera=True):
    """The download menu of a page with one table and one figure. Files are made when asked for.

    Args:
        name: of the files, without an ending.
        header: names of the table's columns.
        rows: callable () -> rows of the table, whose text is made safe for spreadsheets here.
        data: callable () -> what ``json.dumps`` takes.
        figure: callable () -> a Plotly figure, or None.
        arrays: callable () -> dict of arrays for a NumPy file, or None.
        camera: whether what the cameras save is chosen here; on a page of several menus in one of them.
    """
    with st.popover("Save", icon=":material/download:", type="tertiary"):
        _button("CSV", f"{name}.csv", "text/csv", lambda: table_csv(header, rows()))
        _button(
            "JSON",
            f"{name}.json",
            "application/json",
            lambda: json.dumps(data(), ensure_ascii=False, indent=2),
        )
        if arrays is not None:
            _button("Arrays (NPZ)", f"{name}.npz", "application/octet-stream", lambda: npz(arrays()))
        if figure is None:
            return
        _button("Figure (HTML)", f"{name}.html", "text/html", lambda: figure_html(figure(), plot_config(name)))
        if not camera:
            return
        st.radio(
            "The camera above a figure saves",
            ["png", "svg"],
            format_func=str.upper,
            horizontal=True,
            key=PICTURE,
            persist_state="session",
            help="The file has that camera too.",
        )


def npz(arrays):
    """Arrays as the bytes of a compressed NumPy file."""
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def table_csv(header, rows):
    """A table as CSV text; numbers with six digits, text made safe for spreadsheets."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    for row in rows:
        writer.writerow([f"{cell:.6g}" if isinstance(cell, float) else _cell(cell) for cell in row])
    return out.getvalue()


def _cell(value):
    return safe_cell(value) if isinstance(value, str) else value


def plot_config(name):
    """Plotly's settings for a figure: the camera saves ``name`` in the format that was chosen."""
    return {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"format": picture_format(), "filename": name, "scale": 2},
    }


def picture_format():
    """What the camera in a figure's corner saves: "png" or "svg"."""
    return st.session_state.get(PICTURE, "png")


def _button(label, name, kind, make):
    st.download_button(
        label,
        make,
        file_name=name,
        mime=kind,
        on_click="ignore",
        key=f"w_save_{name}_{label}",
        width="stretch",
        type="tertiary",
    )
