"""Numbers as the pages show them: in texts, in tables and beside the colours of a figure."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import streamlit as st

from ui.elements import tables
from ui.widgets import figures
from ui.widgets.formatting import axes, number, share, shortened, signed, true_minus


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [number(-0.001), number(-1234.56, 1), number(5, 0)] == ["0.00", "−1,234.6", "5"]
    assert [signed(-0.001), signed(-0.5), share(-0.1), share(1)] == ["+0.00", "−0.50", "−10.0%", "100.0%"]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("-0.98", "−0.98"),
        ("-0.00 to -0.004", "0.00 to −0.004"),
        ("(-1, -0)", "(−1, 0)"),
        ("GPT-2 and 2019-10-11, rows 1-2", "GPT-2 and 2019-10-11, rows 1-2"),
    ],
)
def test_only_the_signs_of_numbers_change(written, wanted):
    assert true_minus(written) == wanted


def _shown(monkeypatch, data, **options):
    """(the frame that Streamlit gets, the texts of its cells, the settings of its columns)."""
    drawn = {}
    monkeypatch.setattr(st, "dataframe", lambda frame, **more: drawn.update(frame=frame, **more))
    tables.show(data, hide_index=True, **options)
    frame = drawn["frame"]
    if isinstance(frame, pd.DataFrame):
        return frame, None, drawn["column_config"]
    cells = frame._translate(False, False)["body"]
    shown = [[cell["display_value"] for cell in row if cell["type"] == "td"] for row in cells]
    return frame.data, shown, drawn["column_config"]


def test_a_column_has_the_same_decimals_in_all_rows(monkeypatch):
    number_column = st.column_config.NumberColumn
    data = {
        "word": ["a", "b", "c"],
        "score": [-0.0001, -2.5, 12345.678],
        "share": [0.1, 0.1234, np.nan],
        "count": [1, 1024, 30522],
        "right": [True, False, True],
    }
    config = {"score": number_column(format="%+.3f"), "share": number_column(format="percent"), "other": "Not here"}
    frame, cells, _ = _shown(monkeypatch, data, column_config=config)
    assert cells == [
        ["a", "+0.000", "10.0%", "1", "True"],
        ["b", "−2.500", "12.3%", "1,024", "False"],
        ["c", "+12,345.678", "", "30,522", "True"],
    ]
    assert list(frame["score"]) == data["score"], "a press on the header sorts by the numbers"
    assert config["score"]["type_config"]["format"] == "%+.3f", "the declaration of the page stays as it is"


def test_the_number_of_a_thing_has_no_separator(monkeypatch):
    config = {"unit": st.column_config.NumberColumn(format="plain")}
    frame, cells, _ = _shown(monkeypatch, {"unit": [2403, 7]}, column_config=config)
    assert cells == [["2403"], ["7"]] and list(frame["unit"]) == [2403, 7]


def test_bars_of_shares_have_one_decimal(monkeypatch):
    config = {"share": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)}
    frame, _, columns = _shown(monkeypatch, {"share": [0.1097, 0.061]}, column_config=config)
    assert list(frame["share"]) == pytest.approx([10.97, 6.1])
    settings = columns["share"]["type_config"]
    assert (settings["format"], settings["min_value"], settings["max_value"]) == ("%.1f%%", 0, 100)


def test_a_large_table_is_formatted_by_the_browser(monkeypatch):
    data = {"row": range(20_000)}
    _, cells, _ = _shown(monkeypatch, data)
    assert cells is None


def test_texts_of_cells_stand_out_from_every_colour():
    figure = go.Figure(
        go.Heatmap(
            z=[[0.0, 0.5], [1.0, np.nan]],
            x=["1", "2"],
            y=["1", "2"],
            zmin=0,
            zmax=1,
            colorscale=[[0, "#ffffff"], [0.5, "#d98a35"], [1, "#0f3a7a"]],
            texttemplate="%{z:.2f}",
        )
    )
    drawn = figures._with_readable_texts(figure)
    assert drawn.data[0].texttemplate is None and figure.data[0].texttemplate == "%{z:.2f}"
    assert list(drawn.data[1].text) == ["0.00", "0.50", "1.00"]
    assert list(drawn.data[1].textfont.color) == ["#000000", "#000000", "#ffffff"]


def test_letters_and_long_texts():
    assert axes((("T", 15), ("H", 768)), (("H", 768), ("classes", 2))).count(":") == 2
    assert shortened("The bank raised", 9) == "The bank…" and shortened("short", 9) == "short"
