"""Subsets of a file's rows, named by hand: their numbers are those of their rows alone, and the link holds them."""

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.explain import summarise_rows
from bert_tf.explain.datasets.text_rows import format_row_numbers, parse_row_numbers
from tests.app.page_reading import page_text, param, run_until_done, table_key
from tests.app.test_dataset import sample
from tests.app.test_representation_pages import array, figure
from ui.samples.concepts import lines

LINK = {"page": "dataset", "dataset.ask": "masks", "dataset.hide": "last"}


def test_rows_are_named_by_their_numbers():
    numbers = (1, 2, 4, 5, 6, 9)
    assert format_row_numbers([9, 2, 4, 5]) == "2.4-5.9" and format_row_numbers([]) == ""
    assert parse_row_numbers("2.4-5.9", numbers) == (2, 4, 5, 9) == parse_row_numbers("2, 4-5,9", numbers)
    assert parse_row_numbers("3", numbers) == () and parse_row_numbers("1-9999999", numbers) == numbers
    for wrong in ("", "a", "1-", "2--3", "1-99999999", "-4"):
        with pytest.raises(InputError, match="such as 1-4,7"):
            parse_row_numbers(wrong, numbers)


def keep(app, name):
    app.text_input(key="w_dataset_subset_name").set_value(name).run()
    app.button(key="w_dataset_subset_keep").click().run()
    return run_until_done(app)


def test_a_subset_is_named_looked_at_renamed_and_deleted(open_app, saved):
    app = run_until_done(open_app(**LINK))
    assert "Tick rows in the table, or set a filter above" in page_text(app)
    app.text_input(key="w_dataset_words").set_value("of").run()
    left = list(run_until_done(app).dataframe[0].value["row"])
    app = keep(app, "the/cities; ")
    assert param(app, "dataset.subsets").startswith("sentences.txt/the cities/")
    app.text_input(key="w_dataset_words").set_value("").run()
    app.selectbox(key="w_dataset_subset").set_value("the cities").run()
    app = run_until_done(app)
    compared, rows = app.dataframe[0].value, app.dataframe[1].value
    assert list(rows["row"]) == left and list(compared["Rows of"]) == ["All rows", "the cities"]
    assert list(compared["Rows"]) == [26, len(left)]
    own = summarise_rows([one for one in app.session_state["_jobs"]["dataset"].result if one.row.number in left])
    assert compared["First prediction right"][1] == f"{100 * own.first:.1f}%"
    names = {}
    exec(app.code[0].value, names)
    assert [one.row.number for one in names["own"]] == left
    place = saved["rows"]["header"].index("subsets")
    inside = [row[place] for row in saved["rows"]["rows"]]
    assert inside.count("the cities") == len(left) and set(inside) == {"", "the cities"}
    assert list(saved["rows"]["json"]["subsets"]) == ["the cities"]
    assert [row[:2] for row in saved["subsets"]["rows"]] == [["All rows", "26"], ["the cities", str(len(left))]]
    # The link holds it; the map is of its rows.
    link = {name: param(app, name) for name in ("dataset.subsets", "dataset.subset")}
    map_of = run_until_done(open_app(**LINK, **link, **{"dataset.look": "map"}))
    assert sum(len(array(one["x"])) for one in figure(map_of, 0)) == len(left)
    app.text_input(key="w_dataset_subset_0").set_value("towns").run()
    app = run_until_done(app)
    assert param(app, "dataset.subset") == "towns" and list(app.dataframe[1].value["row"]) == left
    app.button(key="w_dataset_subset_0_delete").click().run()
    app = run_until_done(app)
    assert param(app, "dataset.subsets") is None and param(app, "dataset.subset") is None
    assert len(app.dataframe[0].value) == 26


def test_the_ticks_of_a_table_are_those_of_its_rows(open_app):
    app = run_until_done(open_app(**LINK))
    whole = table_key(app, "w_dataset_table")
    app.session_state[whole] = {"selection": {"rows": [1, 2], "columns": [], "cells": []}}
    assert app.run().text_input(key="w_dataset_subset_name").label == "Name of the 2 rows ticked"
    app.text_input(key="w_dataset_words").set_value("of").run()
    app = run_until_done(app)
    assert table_key(app, "w_dataset_table") != whole
    assert app.text_input(key="w_dataset_subset_name").label.endswith(" rows under this filter")
    app.text_input(key="w_dataset_words").set_value("").run()
    app = run_until_done(app)
    assert table_key(app, "w_dataset_table") == whole
    assert "Tick rows in the table" in page_text(app)


def test_a_subset_belongs_to_its_file_and_broken_ones_are_left_out(open_app):
    broken = (
        "sentences.txt/none/900;sentences.txt/odd/x;sentences.txt//1;nonsense;pairs.jsonl/mine/1-2;"
        "sentences.txt/some/1.3"
    )
    app = run_until_done(open_app(**LINK, **{"dataset.subsets": broken, "dataset.subset": "none"}))
    assert app.selectbox(key="w_dataset_subset").options == ["All rows", "some"]
    app = run_until_done(
        open_app(page="dataset", **{"dataset.file": "upload", "dataset.ask": "masks", "dataset.hide": "last"})
    )
    app.file_uploader(key="w_dataset_upload").upload("f.txt", b"the cat\nthe dog\nit ran", "text/plain").run()
    app = run_until_done(app)
    app.text_input(key="w_dataset_words").set_value("the").run()
    app = keep(run_until_done(app), "the")
    assert param(app, "dataset.subsets").startswith("own-") and list(app.dataframe[0].value["Rows"]) == [3, 2]


def classified(open_app):
    """The page with four rows of a file of the visitor's, two good and two bad, classified."""
    file = "text,label\n" + "".join(
        f"{text},{label}\n"
        for text, label in (
            ("the cat sat", "good"),
            ("a dog ran", "bad"),
            ("it was good", "good"),
            ("money in the bank", "bad"),
        )
    )
    app = open_app(page="dataset", model="classes", **{"dataset.file": "upload", "dataset.ask": "classes"})
    app.file_uploader(key="w_dataset_upload").upload("f.csv", file.encode(), "text/csv").run()
    return run_until_done(app)


@pytest.mark.usefixtures("with_tasks")
def test_a_subset_has_its_own_scores_and_confusion(open_app, saved):
    app = classified(open_app)
    classes = [one.predicted for one in app.session_state["_jobs"]["dataset"].result]
    app.text_input(key="w_dataset_words").set_value("the").run()
    app = keep(run_until_done(app), "the")
    app.selectbox(key="w_dataset_subset").set_value("the").run()
    app = run_until_done(app)
    right = [classes[place] == label for place, label in ((0, "good"), (3, "bad"))]
    assert app.dataframe[0].value["Accuracy"][1] == f"{np.mean(right):.3f}"
    assert [saved[name]["npz"]["counts"].sum() for name in ("confusion", "subset-confusion")] == [4, 2]
    assert "Confusion matrix of “the”" in page_text(app)


@pytest.mark.usefixtures("with_tasks")
def test_a_class_at_another_threshold(open_app, saved):
    app = classified(open_app)
    results, classes = app.session_state["_jobs"]["dataset"].result, app.selectbox(key="w_dataset_curve")
    assert set(classes.options) == {"good", "bad"}
    classes.set_value("bad").run()
    values = [one.task_prediction["probabilities"]["bad"] for one in results]
    threshold = round(sorted(values)[2], 2)
    app.slider(key="w_dataset_threshold").set_value(threshold).run()
    app = run_until_done(app)
    assert param(app, "dataset.curve") == "bad" and param(app, "dataset.threshold") == str(threshold)
    taken = [value >= threshold for value in values]
    right = taken[1] + taken[3]
    drawn = [figure(app, place) for place in range(len(app.get("plotly_chart")))][-2:]
    assert drawn[0][1]["x"] == [right / 2] and drawn[1][1]["y"] == [right / 2]
    assert drawn[1][1]["x"] == [(sum(taken) - right) / 2]
    assert sorted(set(array(drawn[0][0]["x"]))) == sorted({0.0, *saved["class-curve"]["npz"]["recall"]})
    assert f"threshold of {100 * threshold:.1f}% the class is predicted for {sum(taken)} row" in page_text(
        app
    ) and f"recall {50 * right:.1f}%" in page_text(app)
    assert "class_curve(bert, results, 'bad')" in app.code[0].value and f"curve.at({threshold})" in app.code[0].value
    # Of a subset its own rows alone.
    app.text_input(key="w_dataset_words").set_value("the").run()
    app = keep(run_until_done(app), "the")
    app.selectbox(key="w_dataset_subset").set_value("the").run()
    app = run_until_done(app)
    assert "At another threshold, in “the”" in page_text(app)
    assert "in 2 rows, of which 1 has this label" in page_text(app)
    assert "class_curve(bert, own, 'bad')" in app.code[0].value


def test_a_name_that_is_taken_is_refused_and_nothing_is_lost(open_app):
    link = {**LINK, "dataset.subsets": "sentences.txt/All rows/1-3;sentences.txt/x/1-3", "dataset.words": "of"}
    app = run_until_done(open_app(**link))
    before = param(app, "dataset.subsets")
    for name in ("x", "All rows"):
        app = keep(app, name)
        assert f"“{name}” is taken: choose another name." in page_text(app) and param(app, "dataset.subsets") == before
    assert list(app.dataframe[0].value.iloc[:, 0]) == ["All rows", "x"]
    app = keep(app, "a|b;\x00c")
    assert "/a b c/" in param(app, "dataset.subsets")


def test_rows_are_tested_as_a_concept_by_a_press(open_app):
    chosen, rows = [2, 3, 5, 7, 11, 13], sample("sentences.txt").rows
    link = {"dataset.subsets": f"sentences.txt/few/1-5;sentences.txt/mine/{format_row_numbers(chosen)}"}
    app = run_until_done(open_app(**LINK, **link))
    assert app.button(key="w_dataset_subset_0_concept").disabled
    app.button(key="w_dataset_subset_1_concept").click().run()
    own, others = ([row.text_a for row in rows if (row.number in chosen) == inside] for inside in (True, False))
    assert param(app, "page") == "tcav" and param(app, "tcav.file") == "sentences.txt"
    assert app.text_area(key="w_tcav_own").value == "\n".join(own)
    assert app.text_area(key="w_tcav_others").value == "\n".join(others)
    app.selectbox(key="w_tcav_of").set_value("word").run()
    app.text_input(key="w_tcav_word").set_value("table").run()
    actual = run_until_done(app).session_state["_jobs"]["tcav"].result
    assert actual.sentences == 6 and len(actual.places) == len(rows)
    # What a filter leaves needs no name; an upload, and its columns, go along.
    app = open_app(
        page="dataset",
        **{
            "dataset.file": "upload",
            "dataset.ask": "masks",
            "dataset.hide": "last",
            "dataset.first": "said",
            "dataset.second": "id",
            "dataset.words": "cat",
        },
    )
    read = [f"x,{'cat' if number < 7 else 'dog'} number {number} is here" for number in range(30)]
    app.file_uploader(key="w_dataset_upload").upload("f.csv", "\n".join(["id,said", *read]).encode(), "text/csv").run()
    app = run_until_done(app)
    app.button(key="w_dataset_subset_concept").click().run()
    assert app.text_area(key="w_tcav_own").value.splitlines() == [line[2:] for line in read[:7]]
    assert app.text_area(key="w_tcav_others").value.splitlines() == [line[2:] for line in read[7:]]
    assert "Read from f" in page_text(app) and app.selectbox(key="w_tcav_first").value == "said"
    assert app.selectbox(key="w_tcav_second").value == "id" == param(app, "tcav.second")


def test_what_is_typed_for_a_concept_is_bounded():
    assert (
        lines(["a\n b", "c", "d"], 2, 100) == "a b\nc" and lines(["abc", "de"], 9, 6) == "abc" and lines([], 2, 9) == ""
    )
