"""The map of a file's rows on the page about whole files, compared with the library's numbers."""

import threading

import numpy as np
import pytest

import bert_tf
from bert_tf.explain import (
    nearest_rows,
    principal_components,
    project_to_plane,
    row_attributes,
    row_vectors,
    score_rows,
)
from tests.app.page_reading import (
    PATIENCE,
    column,
    near,
    offered,
    page_text,
    param,
    run_until_done,
    shows_progress,
)
from tests.app.test_dataset import sample
from tests.app.test_representation_pages import array, figure

MAP = {"page": "dataset", "top": "3", "dataset.look": "map", "dataset.hide": "last", "dataset.ask": "masks"}


@pytest.fixture(scope="module")
def cased(explorer_home):
    return bert_tf.load(explorer_home / "tiny-cased")


@pytest.fixture(scope="module")
def rows():
    return sample("sentences.txt").rows


@pytest.fixture(scope="module")
def results(cased, rows):
    return score_rows(cased, rows, ("masks",), "last", 3)


def test_every_row_is_a_point_in_its_place_and_colour(open_app, saved, cased, rows, results):
    app = run_until_done(open_app(**MAP, **{"dataset.colour": "hidden_probability"}))
    offered(app, saved, ("rows", "row-map-3"))
    vectors = row_vectors(cased, rows).vectors[3]
    wanted, _ = principal_components(vectors)
    values = row_attributes(results)["hidden_probability"]
    drawn = figure(app, 0)
    assert sum(len(array(one["x"])) for one in drawn) == len(rows)
    np.testing.assert_allclose(array(drawn[0]["x"]), wanted[:, 0], atol=1e-3)
    np.testing.assert_allclose(array(drawn[0]["marker"]["color"]), values, atol=1e-4)
    saved_map = saved["row-map-3"]
    assert [int(row[0]) for row in saved_map["rows"]] == [row.number for row in rows]
    near(column(saved_map, "y"), wanted[:, 1], 1e-3)
    near(column(saved_map, "hidden_probability"), values)
    near(saved_map["npz"]["vectors"], vectors, 1e-3)
    assert saved_map["json"]["projection"] == "pca" and len(saved_map["json"]["coordinates"]) == len(rows)


def test_rows_lie_in_space_too(open_app, saved, cased, rows, results):
    link = {"dataset.colour": "hidden_probability", "dataset.row": "2", "dataset.words": "the"}
    app = run_until_done(open_app(**MAP, **link, **{"dataset.space": "1"}))
    vectors = row_vectors(cased, rows).vectors[3]
    wanted, _ = project_to_plane(vectors, "pca", 3)
    left = [index for index, row in enumerate(rows) if "the" in row.text_a.casefold() or row.number == 2]
    points = [one for one in figure(app, 0) if one.get("hoverinfo") != "skip"]
    assert {one["type"] for one in figure(app, 0)} == {"scatter3d"}
    np.testing.assert_allclose(array(points[0]["z"]), wanted[left, 2], atol=1e-3)
    near(column(saved["row-map-3"], "z"), wanted[left, 2], 1e-3)
    rings = [one for one in figure(app, 0) if one.get("hoverinfo") == "skip"]
    near([array(rings[0][axis])[0] for axis in "xyz"], wanted[1], 1e-3)
    names = {}
    exec(app.code[0].value, names)
    np.testing.assert_allclose(names["places"], wanted, atol=1e-3)
    app.toggle(key="w_dataset_space").set_value(False).run()
    assert param(run_until_done(app), "dataset.space") is None and {one["type"] for one in figure(app, 0)} == {
        "scatter"
    }


def test_filters_and_settings_are_those_of_the_map_too(open_app, results, rows):
    app = run_until_done(open_app(**MAP))
    assert app.selectbox(key="w_dataset_colour").options[0] == "First prediction right or wrong"
    app.text_input(key="w_dataset_words").set_value("the").run()
    left = [one for one in results if "the" in one.row.text_a.casefold()]
    groups = {one["name"]: len(array(one["x"])) for one in figure(run_until_done(app), 0)}
    values = row_attributes(results)["first_prediction"]
    inside = [values[index] for index, row in enumerate(rows) if "the" in row.text_a.casefold()]
    assert 0 < len(left) < len(rows) and groups == {name: inside.count(name) for name in set(inside)}
    app.slider(key="w_dataset_layer").set_value(1).run()
    app.button_group(key="w_dataset_vector").set_value("first").run()
    app.selectbox(key="w_dataset_colour").set_value("tokens").run()
    app = run_until_done(app)
    assert [param(app, f"dataset.{name}") for name in ("layer", "vector", "colour")] == ["1", "first", "tokens"]
    assert "component 1" in app.get("plotly_chart")[0].proto.spec
    app.button_group(key="w_dataset_look").set_value("table").run()
    assert "prediction" in app.dataframe[0].value and "dataset_vectors" in app.session_state["_jobs"]


def test_nothing_is_worked_out_for_a_map_that_is_not_looked_at(open_app):
    app = run_until_done(open_app(**{**MAP, "dataset.look": "table"}))
    assert "dataset_vectors" not in app.session_state["_jobs"]


def test_the_rows_nearest_to_the_chosen_one_and_opening_it(open_app, saved, cased, rows):
    number = rows[4].number
    app = run_until_done(open_app(**MAP, **{"dataset.row": str(number), "dataset.layer": "2"}))
    assert set(saved) == {"rows", "row-map-2", f"nearest-{number}"}
    wanted = nearest_rows(row_vectors(cased, rows).vectors[2], 4, 8)
    table = app.dataframe[0].value
    assert list(table["row"]) == [rows[index].number for index, _ in wanted]
    assert list(table["cosine"]) == pytest.approx([cosine for _, cosine in wanted], abs=1e-4)
    near(column(saved[f"nearest-{number}"], "cosine"), [cosine for _, cosine in wanted])
    rings = [one for one in figure(app, 0) if one.get("hoverinfo") == "skip"]
    assert len(rings) == 9
    app.button(key="w_dataset_open_go").click().run()
    assert param(run_until_done(app), "a") == rows[4].text_a and param(app, "page") in (None, "predict")


def test_the_nearest_are_looked_for_among_all_rows_under_a_filter(open_app, saved, cased, rows):
    hidden = next(index for index, row in enumerate(rows) if "of" not in row.text_a.casefold())
    left = [row.number for row in rows if "of" in row.text_a.casefold()]
    app = run_until_done(open_app(**MAP, **{"dataset.row": str(rows[hidden].number), "dataset.words": "of"}))
    wanted = [rows[index].number for index, _ in nearest_rows(row_vectors(cased, rows).vectors[3], hidden, 8)]
    assert list(app.dataframe[0].value["row"]) == wanted and not set(wanted) <= set(left)
    assert [one["row"] for one in saved[f"nearest-{rows[hidden].number}"]["json"]["nearest"]] == wanted
    # The row that is looked at stays; of those near it the ones that are drawn have rings.
    assert saved["row-map-3"]["json"]["rows"] == sorted([*left, rows[hidden].number])
    rings = [one for one in figure(app, 0) if one.get("hoverinfo") == "skip"]
    assert len(rings) == 1 + len(set(wanted) & set(left))
    assert len(app.selectbox(key="w_dataset_row").options) == len(left) + 2
    names = {}
    exec(app.code[0].value, names)
    assert [names["numbers"][index] for index, _ in names["near"]] == wanted


def test_first_tokens_that_are_the_same_in_every_row_are_said_to_be(open_app):
    app = run_until_done(open_app(**MAP, **{"dataset.vector": "first", "dataset.layer": "0", "dataset.row": "2"}))
    assert "After this layer the first token is the same in every row: choose" in page_text(app)
    assert not app.get("plotly_chart") and not app.dataframe and "row_vectors" not in app.code[0].value
    app.slider(key="w_dataset_layer").set_value(1).run()
    assert len(run_until_done(app).get("plotly_chart")) == 1 and "the same in every row" not in page_text(app)


@pytest.mark.parametrize("way", ["umap", "tsne"])
def test_rows_too_few_for_a_way_are_said_to_be_and_the_rest_is_there(open_app, way):
    app = open_app(**MAP, **{"dataset.file": "upload", "dataset.way": way, "dataset.row": "1"})
    few = "the cat sat\n\u200b\nit ran".encode()
    app.file_uploader(key="w_dataset_upload").upload("few.txt", few, "text/plain").run()
    app = run_until_done(app)
    assert "needs at least 5 points, not 2: PCA takes fewer." in page_text(app) and "sentences" not in page_text(app)
    assert list(app.dataframe[0].value["row"]) == [3] and "1 row could not be answered in full" in page_text(app)
    assert "nearest_rows" in app.code[0].value and "lay_out" not in app.code[0].value


def test_what_cannot_be_stopped_has_no_stop_and_much_of_it_waits_for_a_press(open_app, monkeypatch):
    from ui.widgets import projections

    asked, goes_on = [], threading.Event()

    def slow(vectors, way, dimensions):
        asked.append(way)
        goes_on.wait(PATIENCE)
        return project_to_plane(vectors, way, dimensions)

    monkeypatch.setattr(projections, "project_to_plane", slow)
    monkeypatch.setattr(projections, "_UNASKED", 10)
    app = run_until_done(open_app(**MAP, **{"dataset.way": "tsne", "dataset.row": "2"}))
    for layer in (1, 2):
        app.slider(key="w_dataset_layer").set_value(layer).run()
    assert not asked and not app.get("plotly_chart") and "cannot be stopped" in page_text(app)
    app.button(key="w_dataset_places_run").click().run()
    assert asked == ["tsne"] and shows_progress(app)
    assert not [one.key for one in app.button if (one.key or "").startswith("w_stop_")]
    assert len(app.dataframe[0].value) == 8
    goes_on.set()
    assert len(run_until_done(app).get("plotly_chart")) == 1
    app.slider(key="w_dataset_layer").set_value(1).run()
    assert asked == ["tsne"] and not app.get("plotly_chart") and "cannot be stopped" in page_text(app)
    monkeypatch.setattr(projections, "_UNASKED", 300)
    assert len(run_until_done(app.run()).get("plotly_chart")) == 1 and asked == ["tsne"] * 2


@pytest.mark.parametrize("way", ["umap", "tsne"])
def test_other_ways_lay_out_the_same_rows(open_app, saved, cased, rows, way):
    app = run_until_done(open_app(**MAP, **{"dataset.way": way, "dataset.layer": "1"}))
    arrays = saved["row-map-1"]["npz"]
    wanted, _ = project_to_plane(arrays["vectors"], way)
    np.testing.assert_allclose(arrays["coordinates"], wanted, atol=1e-4)
    near(arrays["vectors"], row_vectors(cased, rows).vectors[1], 1e-3)
    assert {"umap": "UMAP keeps", "tsne": "t-SNE keeps"}[way] in page_text(app)


def test_a_press_on_a_point_chooses_its_row(monkeypatch):
    from types import SimpleNamespace

    import streamlit as st

    from pages.data import row_map_view
    from ui.session import state

    pressed, chosen = {}, []
    monkeypatch.setattr(st, "session_state", {"w_dataset_map": pressed})
    monkeypatch.setattr(state, "set_setting", lambda *args: chosen.append(args))
    rows = [SimpleNamespace(row=SimpleNamespace(number=number)) for number in (3, 5, 8, 9)]
    view = SimpleNamespace(rows=rows, values=["wrong", "right", "wrong", None])
    act = row_map_view._pressed(view, [0, 2, 3])
    for curve, point in ((0, 1), (1, 0), (2, 0), (0, 9)):
        st.session_state["w_dataset_map"] = SimpleNamespace(
            selection=SimpleNamespace(points=[{"curve_number": curve, "point_index": point}])
        )
        act()
    st.session_state["w_dataset_map"] = SimpleNamespace(selection=SimpleNamespace(points=[]))
    act()
    # "right" is filtered out, so the first curve is "wrong" and the second what is not known.
    assert chosen == [("dataset.row", 8, 0), ("dataset.row", 9, 0)]


def test_meaning_is_laid_out_by_tsne_beside_the_page(open_app):
    app = run_until_done(open_app(page="word_senses", **{"word_senses.way": "tsne", "word_senses.example": "bat"}))
    assert sum(len(array(one["x"])) for one in figure(app, 0)) == 18 and param(app, "word_senses.way") == "tsne"
    short = {"word_senses.example": "own sentences", "word_senses.word": "cat", "word_senses.lines": "A cat.\nThe cat."}
    app = open_app(page="word_senses", **short, **{"word_senses.way": "tsne"})
    app = run_until_done(app)
    assert "SNE needs at least 5 points, not 2" in page_text(app)
    assert len(app.get("plotly_chart")) == 1 and "tsne" not in app.code[0].value  # the map of cosines is there
    names = {}
    exec(app.code[0].value, names)
    assert names["vectors"].shape[0] == 2
