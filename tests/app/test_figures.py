"""Every figure of a page comes with its words."""

import json
import re

from tests.app.page_reading import component, run_until_done
from ui.shell.limits import ROOT


def test_every_figure_is_drawn_with_its_words():
    drawing = [
        path.name
        for folder in ("pages", "ui")
        for path in (ROOT / folder).rglob("*.py")
        if "plotly_chart(" in path.read_text("utf-8")
    ]
    assert drawing == ["figures.py"]


def test_the_words_are_those_of_the_figure(open_app):
    app = open_app(page="all_heads", a="The cat sat.", **{"all_heads.as": "map"})
    output = component(app, "figure")
    assert output["what"] == "Attention, layer 1 head 1" and output["table"] is None
    highest = re.match(r"6 rows by 6 columns\. Highest: from (\S+) to (\S+), 0\.\d{3}; ", output["said"])
    assert highest and set(highest.groups()) <= {"[CLS]", "The", "cat", "sat", ".", "[SEP]"}


def test_no_figure_has_a_camera_whose_picture_would_not_say_what_it_shows(open_app):
    app = open_app(page="all_heads", a="The cat sat.", **{"all_heads.as": "map"})
    chart = app.get("plotly_chart")[0].proto
    assert component(app, "figure")["scale"] and "toImage" in json.loads(chart.config)["modeBarButtonsToRemove"]
    app = run_until_done(open_app(page="saliency", a="The cat sat.", mask="a1", **{"saliency.method": "gradient"}))
    chart = app.get("plotly_chart")[0].proto
    assert component(app, "figure")["scale"] is None
    assert "toImage" in json.loads(chart.config)["modeBarButtonsToRemove"]
