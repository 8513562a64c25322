"""Words as vectors, on the pages: what goes in, one word in many sentences, nearest words."""

import base64
import json

import numpy as np
import pytest

import bert_tf
import pages.representations.word_senses
from bert_tf.explain import (
    cosine_similarities,
    count_contexts,
    count_labels,
    count_offsets,
    embedding_parts,
    embedding_table,
    factorise,
    feed_forward_activations,
    head_outputs,
    label_contexts,
    matched_labels,
    nearest_contexts,
    nearest_tokens,
    occurrences,
    parsed_labels,
    principal_components,
    read_rows,
    sense_separation,
    umap,
)
from bert_tf.explain.models.architecture import layer_activations
from bert_tf.explain.representations.vectors import word_ids
from tests.app.page_reading import (
    column,
    component,
    near,
    offered,
    page_text,
    param,
    run_until_done,
    table_key,
)
from ui.samples import word_senses
from ui.shell.limits import ROOT
from ui.widgets.formatting import direction

PAIR = {"a": "The bunny ate the carrot.", "b": "It was good."}


@pytest.fixture(scope="module")
def bert(explorer_home):
    return bert_tf.load(explorer_home / "tiny-cased")


def figure(app, index):
    return json.loads(app.get("plotly_chart")[index].proto.spec)["data"]


def array(packed):
    """Numbers of a figure's JSON, packed or not."""
    if isinstance(packed, dict):
        flat = np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
        return flat.reshape([int(size) for size in packed["shape"].split(",")]) if "shape" in packed else flat
    return np.array(packed, float)


@pytest.mark.parametrize("page", ["input_embeddings", "word_senses", "nearest_words", "factors"])
def test_a_page_opens_on_an_empty_link_and_survives_an_odd_one(open_app, page):
    assert run_until_done(open_app(page=page)).title
    odd = {
        "start": "-4",
        "at": "x",
        "vector": "99",
        "of": "y",
        "layer": "77",
        "way": "z",
        "example": "q",
        "space": "7",
        "count": "99",
        "layers": "3-1",
    }
    run_until_done(open_app(page=page, **{f"{page}.{name}": value for name, value in odd.items()}))


def test_the_sum_is_taken_apart_as_the_library_does(open_app, bert):
    app = run_until_done(open_app(page="input_embeddings", **PAIR, mask="a4"))
    trace = bert.trace(PAIR["a"], PAIR["b"], mask=["carrot"])
    parts = embedding_parts(bert, trace)
    for row, bars in enumerate(figure(app, 0)):
        np.testing.assert_allclose(array(bars["x"]), parts.shares[row], atol=1e-4)
    table = app.dataframe[0].value
    assert list(table["word"]) == list(trace.tokens)
    columns = json.loads(app.dataframe[0].proto.columns)
    assert (columns["word"]["label"], columns["alike"]["label"]) == ("Word", "Cosine")
    np.testing.assert_allclose(table["position"], parts.norms[2], atol=1e-4)
    np.testing.assert_allclose(array(figure(app, 1)[0]["z"]), cosine_similarities(parts.total), atol=1e-4)
    table = cosine_similarities(embedding_table(bert, "position"))
    np.testing.assert_allclose(array(figure(app, 2)[0]["z"]), table[::4, ::4], atol=1e-4)
    np.testing.assert_allclose(array(figure(app, 3)[0]["y"])[1], np.diagonal(table, 1).mean(), atol=1e-4)


def test_the_likeness_of_one_part_can_be_chosen(open_app, bert):
    app = run_until_done(open_app(page="input_embeddings", **PAIR, **{"input_embeddings.of": "segment"}))
    trace = bert.trace(PAIR["a"], PAIR["b"])
    wanted = cosine_similarities(embedding_parts(bert, trace).vectors[1])
    np.testing.assert_allclose(array(figure(app, 1)[0]["z"]), wanted, atol=1e-4)
    app.button_group(key="w_sum_of").set_value("token").run()
    assert param(run_until_done(app), "input_embeddings.of") == "token"


def test_long_texts_are_drawn_in_windows(open_app):
    app = run_until_done(open_app(page="input_embeddings", a="The bunny ate a carrot . " * 30))
    assert len(app.dataframe[0].value) == 48
    app.slider(key="w_sum_start").set_value(20).run()
    assert param(run_until_done(app), "input_embeddings.start") == "20"
    assert (
        len(component(run_until_done(open_app(page="nearest_words", a="The bunny ate . " * 30)), "cells")["rows"]) == 32
    )


def test_the_first_word_after_the_middle_layer_is_open_at_first(open_app):
    cells = component(run_until_done(open_app(page="nearest_words", **PAIR)), "cells")
    assert cells["columns"][cells["picked"] % len(cells["columns"])] == "1"


def test_neighbours_are_the_librarys(open_app, bert):
    app = run_until_done(
        open_app(page="nearest_words", **PAIR, **{"nearest_words.at": "2", "nearest_words.vector": "3"})
    )
    cells = component(app, "cells")
    trace = bert.trace(PAIR["a"], PAIR["b"])
    ids = word_ids(bert.tokenizer)
    own = int(trace.token_ids[2])
    static = embedding_table(bert, "token")[own]
    vectors = [static, *trace.hidden_states[:, 2]]
    wanted = [nearest_tokens(bert, vector, 10, True, ids) for vector in vectors]
    width = len(cells["columns"])
    assert cells["columns"] == ["static", "emb.", "1", "2", "3"] and cells["picked"] == 2 * width + 3
    row = slice(2 * width, 3 * width)
    assert cells["texts"][row] == [next(one.token for one in near if one.id != own) for near in wanted]
    assert cells["edges"][row] == [near[0].id == own for near in wanted]
    for table, other in zip(app.dataframe, (wanted[0], wanted[3])):
        assert list(table.value["word"]) == [one.token for one in other]
        np.testing.assert_allclose(table.value["cosine"], [one.similarity for one in other], atol=1e-4)
    app.toggle(key="w_near_centred").set_value(False).run()
    plain = nearest_tokens(bert, static, 10, False, ids)
    assert list(run_until_done(app).dataframe[0].value["word"]) == [one.token for one in plain]


@pytest.mark.parametrize("centred", [True, False])
def test_the_nearest_places_of_a_sample_are_the_librarys(open_app, saved, bert, centred):
    link = {"nearest_words.at": "2", "nearest_words.vector": "3", "nearest_words.centred": str(int(centred))}
    app = run_until_done(open_app(page="nearest_words", **PAIR, **link, **{"nearest_words.among": "text"}))
    offered(app, saved, ("nearest-words", "contexts"))
    trace = bert.trace(PAIR["a"], PAIR["b"])
    rows = read_rows((ROOT / "assets" / "samples" / "sentences.txt").read_bytes()).rows
    wanted = nearest_contexts(bert, trace.hidden_states[2, [2]], 2, rows, 20, centred)
    table = app.dataframe[0].value
    assert list(table["row"]) == [one.row.number for one in wanted.nearest[0]]
    assert list(table["word"]) == [one.word.text for one in wanted.nearest[0]]
    assert list(table["before"]) == [one.parts[0] for one in wanted.nearest[0]]
    np.testing.assert_allclose(table["cosine"], [one.similarity for one in wanted.nearest[0]], atol=1e-4)
    near(column(saved["contexts"], "similarity"), [one.similarity for one in wanted.nearest[0]])
    assert f"{wanted.tokens_compared} tokens of {wanted.rows_read} rows" in page_text(app)
    assert ("The mean vector is subtracted" in page_text(app)) is centred


def test_places_can_be_compared_by_one_head(open_app, saved, bert):
    link = {"nearest_words.at": "2", "nearest_words.vector": "3", "nearest_words.among": "text"}
    link |= {"nearest_words.file": "pairs.jsonl"}
    app = run_until_done(open_app(page="nearest_words", **PAIR, **link))
    assert not [one for one in app.toggle if one.key == "w_near_tags"]  # no tagger is offered
    picker = app.multiselect(key="w_near_head")
    assert picker.options == [f"Head {head}" for head in range(1, 5)] and picker.placeholder.endswith("after layer 2")
    states = list(app.dataframe[0].value["cosine"])
    assert "looks_at" not in app.dataframe[0].value and "What head" not in page_text(app)
    run_until_done(picker.set_value([3]).run())
    assert param(app, "nearest_words.head") == "3"
    offered(app, saved, ("nearest-words", "contexts", "looked-at"))
    rows = read_rows((ROOT / "assets" / "samples" / "pairs.jsonl").read_bytes(), "jsonl").rows
    vectors = head_outputs(bert, bert.trace(PAIR["a"], PAIR["b"]).hidden_states[1], 1, 2)
    (wanted,) = nearest_contexts(bert, vectors[[2]], 1, rows, 20, True, head=2).nearest
    table = app.dataframe[0].value
    assert [word.strip("«»") for word in table["word"]] == [one.word.text for one in wanted]
    assert {one.word.source for one in wanted} == {"a", "b"}
    near(table["cosine"], [one.similarity for one in wanted])
    assert np.abs(np.array(states) - table["cosine"]).max() > 1e-3
    assert (saved["contexts"]["json"]["layer"], saved["contexts"]["json"]["heads"]) == (1, [2])
    assert saved["contexts"]["json"]["positions"] == [2]
    near(column(saved["contexts"], "similarity"), [one.similarity for one in wanted])
    assert "that head 3 of layer 2 adds there" in page_text(app)
    app = run_until_done(
        open_app(page="nearest_words", **PAIR, **link | {"nearest_words.vector": "1", "nearest_words.head": "3"})
    )
    assert "of the embeddings" in page_text(app) and not [one for one in app.multiselect if one.key == "w_near_head"]


def test_several_heads_look_at_words_of_which_a_file_with_trees_says_what_they_are(open_app, saved, bert):
    link = {"nearest_words.at": "2", "nearest_words.vector": "3", "nearest_words.among": "text"}
    link |= {"nearest_words.file": "trees.conllu"}
    app = run_until_done(open_app(page="nearest_words", **PAIR, **link, **{"nearest_words.head": "4,1,9"}))
    assert app.multiselect(key="w_near_head").value == [1, 4]
    offered(app, saved, ("nearest-words", "contexts", "looked-at"))
    rows = read_rows((ROOT / "assets" / "samples" / "trees.conllu").read_bytes(), "conllu").rows
    vectors = head_outputs(bert, bert.trace(PAIR["a"], PAIR["b"]).hidden_states[1], 1, (0, 3))
    (wanted,) = nearest_contexts(bert, vectors[[2]], 1, rows, 20, True, head=(0, 3)).nearest
    most_attended = [one.most_attended for one in wanted]
    output, there = parsed_labels(wanted), parsed_labels(most_attended)
    table = app.dataframe[0].value
    near(table["cosine"], [one.similarity for one in wanted])
    near(table["share"], [one.share for one in most_attended])
    assert list(table["looks_at"]) == [one.token for one in most_attended]
    assert list(table["offset"]) == [one.offset for one in most_attended]
    for name, labels in zip(("tag", "relation", "looked_tag", "looked_relation"), (*output, *there), strict=True):
        assert list(table[name]) == [label or "" for label in labels]
    for row, one in zip(table.itertuples(), wanted):
        assert (row.before, row.word, row.after) == one.around(70)
    marked = ["«" in f"{row.before}{row.word}{row.after}" for row in table.itertuples()]
    assert marked == [one.word is not None for one in most_attended]
    tags, relations, offsets = (figure(app, number) for number in range(3))
    for bars, own, others in ((tags, output[0], there[0]), (relations, output[1], there[1])):
        for one, labels in zip(bars, (own, others), strict=True):
            drawn = dict(zip(one["y"], array(one["x"])))
            assert {label: number for label, number in drawn.items() if number} == count_labels(labels)
    clipped = [max(-5, min(5, one.offset)) for one in most_attended]
    drawn = np.sum([array(one["y"]) for one in offsets], axis=0)
    steps = range(min(0, *clipped), max(0, *clipped) + 1)
    assert list(drawn) == [clipped.count(step) for step in steps] and drawn.sum() == 20
    assert saved["contexts"]["json"]["heads"] == [0, 3]
    assert saved["contexts"]["json"]["counts"][0]["relations"] == count_labels(output[1])
    near(column(saved["contexts"], "looks_at_share"), [one.share for one in most_attended])
    counts = saved["looked-at"]["json"]
    assert counts["looked_at_parts_of_speech"] == count_labels(there[0])
    assert counts["looked_at_relations"] == count_labels(there[1])
    assert counts["offsets"] == {str(offset): number for offset, number in count_offsets(wanted).items()}
    actual = {(kind, value): int(number) for kind, value, _, number in saved["looked-at"]["rows"] if number != "0"}
    assert actual == {
        **{("parts_of_speech", label): number for label, number in count_labels(there[0]).items()},
        **{("relations", label): number for label, number in count_labels(there[1]).items()},
        **{("offsets", str(offset)): number for offset, number in count_offsets(wanted).items()},
    }
    assert "What heads 1 and 4 of layer 2 attend to there" in page_text(app) and "those of the file" in page_text(app)
    assert any(one.word is None for one in most_attended)
    run_until_done(app.toggle(key="w_near_special").set_value(False).run())
    assert param(app, "special") == "0" and not {"[CLS]", "[SEP]"} & set(app.dataframe[0].value["looks_at"])
    near(app.dataframe[0].value["cosine"], [one.similarity for one in wanted])
    run_until_done(app.multiselect(key="w_near_head").set_value([4, 2]).run())
    assert param(app, "nearest_words.head") == "2,4"
    run_until_done(app.multiselect(key="w_near_head").set_value([]).run())
    assert param(app, "nearest_words.head") is None and "looks_at" not in app.dataframe[0].value


def test_the_sample_with_trees_has_the_words_of_the_sample_of_sentences():
    folder = ROOT / "assets" / "samples"
    rows = read_rows((folder / "trees.conllu").read_bytes(), "conllu").rows
    lines = (folder / "sentences.txt").read_text("utf-8").splitlines()
    assert len(rows) == 24
    assert [row.text_a.replace(" ", "") for row in rows] == [line.replace(" ", "") for line in lines[:24]]
    assert all(row.parsed.relations[row.parsed.heads.index(0)] == "root" and "_" not in row.parsed.tags for row in rows)


def test_of_a_file_with_trees_but_no_labels_none_are_told(bert):
    line = "\t".join(["{}", "{}", "_", "_", "_", "_", "0", "{}", "_", "_"])
    rows = {}
    for relation in ("_", "root"):
        data = f"{line.format(1, 'the', '_')}\n{line.format(2, 'cat', relation)}\n"
        rows[relation] = read_rows(data, "conllu").rows
    vectors = head_outputs(bert, bert.trace("the cat").hidden_states[0], 0, (1,))
    for relation, known in (("_", []), ("root", ["relations"])):
        actual = nearest_contexts(bert, vectors[[1]], 0, rows[relation], 3, True, head=(1,))
        (near,) = label_contexts(None, actual).nearest
        counts = count_contexts(near)
        messages = [name for name in ("parts_of_speech", "relations") if getattr(counts, name)]
        there = [name for name in ("parts_of_speech", "relations") if getattr(counts, f"looked_at_{name}")]
        assert messages == there == known


def test_the_found_words_have_parts_of_speech_where_a_tagger_is_offered(
    open_app, saved, with_tasks, task_home, monkeypatch
):
    monkeypatch.setattr("pages.representations.nearest_contexts.TAGGER", "words")
    link = {"nearest_words.at": "2", "nearest_words.vector": "2", "nearest_words.among": "text"}
    app = run_until_done(open_app(page="nearest_words", **PAIR, **link))
    assert "tag" not in app.dataframe[0].value and "part_of_speech" not in saved["contexts"]["header"]
    run_until_done(app.toggle(key="w_near_tags").set_value(True).run())
    assert param(app, "nearest_words.tags") == "1"
    plain, tagger = (bert_tf.load(task_home / name) for name in ("plain", "words"))
    rows = read_rows((ROOT / "assets" / "samples" / "sentences.txt").read_bytes()).rows
    states = plain.trace(PAIR["a"], PAIR["b"]).hidden_states[1, [2]]
    (actual,) = nearest_contexts(plain, states, 1, rows, 20, True).nearest
    tags = list(matched_labels(tagger, actual))
    counts = count_labels(tags)
    assert list(app.dataframe[0].value["tag"]) == tags
    assert f"Parts of speech: {', '.join(f'{tag} {number}' for tag, number in counts.items())}" in page_text(app)
    menu = saved["contexts"]
    assert [row[menu["header"].index("part_of_speech")] for row in menu["rows"]] == tags
    assert menu["json"]["counts"][0]["parts_of_speech"] == counts
    assert menu["json"]["nearest"][0][0]["part_of_speech"] == tags[0]
    assert list(menu["npz"]["part_of_speech"]) == tags


def test_places_are_of_a_state_and_of_the_visitor_s_file(open_app):
    link = {"nearest_words.among": "text", "nearest_words.at": "2", "nearest_words.file": "upload"}
    app = open_app(page="nearest_words", **PAIR, **link, **{"nearest_words.vector": "0"})
    assert "A static vector is the same" in page_text(app) and not app.dataframe
    app = open_app(page="nearest_words", **PAIR, **link)
    lines = "\n".join(["A bunny came in the end, after all of the others had gone home for the night and slept."] * 41)
    app.file_uploader(key="w_nearest_words_upload").upload("theirs.txt", lines.encode(), "text/plain").run()
    assert "41 rows" in page_text(app) and not app.dataframe
    app.button(key="w_nearest_words_run").click().run()
    table = run_until_done(app).dataframe[0].value
    assert len(table) == 20 and all(len(text) <= 71 for name in ("before", "after") for text in table[name])
    app.button_group(key="w_near_among").set_value("vocabulary").run()
    assert param(app, "nearest_words.among") is None and "word" in app.dataframe[0].value


def factors_of(bert, count, first=0, last=None, special=True):
    """(the trace of the pair, its factors, their weights at all tokens), as the library has them."""
    trace = bert.trace(PAIR["a"], PAIR["b"])
    kept = [place for place, source in enumerate(trace.sources) if special or source is not None]
    actual = factorise(feed_forward_activations(bert, trace, first, last, kept), count)
    weights = np.zeros((len(actual.weights), trace.length))
    weights[:, kept] = actual.weights
    return trace, actual.named(trace.tokens, kept, first), weights


def test_factors_are_the_librarys(open_app, bert):
    app = run_until_done(open_app(page="factors", **PAIR, **{"factors.count": "4", "factors.at": "2"}))
    trace, actual, weights = factors_of(bert, 4)
    points = figure(app, 0)[0]
    np.testing.assert_allclose(array(points["z"]), weights / weights.max(axis=1, keepdims=True), atol=1e-3)
    drawn = [part for side in "ab" for part in component(app, "marks")[side] if "tip" in part]
    places = [place for place, source in enumerate(trace.sources) if source is not None]
    assert [part["text"] for part in drawn] == [trace.tokens[place].removeprefix("##") for place in places]
    np.testing.assert_allclose([part["shade"] for part in drawn], weights[1, places] / weights[1].max(), atol=1e-3)
    assert drawn[0]["tip"] == f"The: {weights[1, places[0]]:.2f}"
    table, units = app.dataframe[0].value, actual.strongest_units(1, 10)
    assert list(zip(table["layer"], table["unit"])) == [(one.layer + 1, one.unit + 1) for one in units]
    np.testing.assert_allclose(table["weight"], [one.weight for one in units], atol=1e-4)
    assert f"It has {100 * actual.shares[1]:.1f}% of the" in page_text(app)
    assert f"all 4 together explain {100 * actual.explained:.1f}%" in page_text(app)
    best = {}
    for weight, token in sorted(zip(-weights[1], trace.tokens)):
        best.setdefault(token, -weight)
    output = ", ".join(f"“{token}” {weight:.1f}" for token, weight in list(best.items())[:5] if weight >= 0.05)
    assert f"Factor 2 is strongest at {output}. It has" in page_text(app).replace("\\", "")
    assert "” 0.0" not in page_text(run_until_done(open_app(page="factors", a="Yes.", **{"factors.at": "2"})))
    app.button_group(key="w_factors_at").set_value(3).run()
    assert param(run_until_done(app), "factors.at") == "3"
    again = [part["shade"] for side in "ab" for part in component(app, "marks")[side] if "tip" in part]
    np.testing.assert_allclose(again, weights[2, places] / weights[2].max(), atol=1e-3)


def test_factors_of_some_layers_without_special_tokens(open_app, bert):
    link = {"factors.count": "3", "factors.layers": "2-3", "factors.at": "1"}
    app = run_until_done(open_app(page="factors", **PAIR, **link))
    app.toggle(key="w_factors_special").set_value(False).run()
    assert param(run_until_done(app), "special") == "0"
    trace, actual, weights = factors_of(bert, 3, 1, 2, special=False)
    np.testing.assert_allclose(array(figure(app, 0)[0]["z"]), weights / weights.max(axis=1, keepdims=True), atol=1e-3)
    assert array(figure(app, 0)[0]["z"])[:, 0].tolist() == [0, 0, 0]  # [CLS]
    table, units = app.dataframe[0].value, actual.strongest_units(0, 10)
    assert list(zip(table["layer"], table["unit"])) == [(one.layer + 1, one.unit + 1) for one in units]
    app.slider(key="w_factors_layers").set_value((2, 2)).run()
    assert param(run_until_done(app), "factors.layers") == "2-2" and set(app.dataframe[0].value["layer"]) == {2}
    app.slider(key="w_factors_layers").set_value((1, 3)).run()
    assert param(run_until_done(app), "factors.layers") is None
    run_until_done(app.slider(key="w_factors_count").set_value(5).run())
    assert len(app.button_group(key="w_factors_at").options) == 5 == len(array(figure(app, 0)[0]["z"]))


def test_the_first_factor_that_is_open_is_one_of_the_words(open_app, bert):
    for special in (True, False):
        app = run_until_done(open_app(page="factors", **PAIR, special=str(int(special))))
        trace, _, weights = factors_of(bert, 6, special=special)
        own = [trace.sources[place] is not None for place in weights.argmax(axis=1)]
        assert app.button_group(key="w_factors_at").value == own.index(True) + 1
        assert param(app, "factors.at") is None


def test_no_more_factors_than_tokens_and_long_texts_in_windows(open_app):
    app = run_until_done(open_app(page="factors", a="Bunny", special="0", **{"factors.count": "6"}))
    assert len(app.dataframe) == 1 and all(slider.key != "w_factors_count" for slider in app.slider)
    app = run_until_done(open_app(page="factors", a="The bunny ate a carrot . " * 30, **{"factors.start": "20"}))
    assert array(figure(app, 0)[0]["z"]).shape == (6, 64) and figure(app, 0)[0]["x"][0] == 19


def test_a_unit_of_a_factor_opens_in_the_architecture(open_app, bert):
    app = run_until_done(open_app(page="factors", **PAIR, **{"factors.at": "1"}))
    trace, actual, _ = factors_of(bert, 6)
    (unit,) = actual.strongest_units(0, 1)
    app.session_state[table_key(app, "w_factors_units")] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    app.run()
    app.button(key="w_factors_open").click().run()
    assert param(app, "page") == "architecture" and not app.exception
    values = layer_activations(bert, trace, unit.layer)["feed_forward_wide"]
    drawn = next(one for one in (figure(app, place)[0] for place in range(2)) if one["type"] == "heatmap")
    np.testing.assert_allclose(array(drawn["z"]), values, atol=1e-3)  # 32 units are all in sight


def test_a_word_is_laid_out_layer_by_layer(open_app, bert):
    app = run_until_done(open_app(page="word_senses", **{"word_senses.layer": "2"}))
    read = word_senses.read(word_senses.example("bank"), 100, 2000)
    actual = occurrences(bert, read.texts, "bank")
    labels = [read.senses[text] for text in actual.texts]
    assert set(labels) == {"money", "river"} and len(labels) == len(read.texts) >= 16
    wanted, _ = principal_components(actual.vectors[2], 2)
    groups = figure(app, 0)
    assert [group["name"] for group in groups] == list(dict.fromkeys(labels))
    rows = [index for index, label in enumerate(labels) if label == groups[0]["name"]]
    np.testing.assert_allclose(array(groups[0]["x"]), wanted[rows, 0], atol=1e-3)
    order = sorted(range(len(labels)), key=lambda index: labels[index])
    cosines = cosine_similarities(actual.vectors[2][order])
    np.testing.assert_allclose(array(figure(app, 1)[0]["z"]), cosines, atol=1e-4)
    apart = sense_separation(actual.vectors, labels)
    np.testing.assert_allclose(array(figure(app, 2)[0]["y"]), apart.nearest, atol=1e-6)
    app.slider(key="w_word_senses_layer").set_value(1).run()
    assert param(run_until_done(app), "word_senses.layer") == "1"


def test_umap_in_space_is_the_librarys(open_app, bert):
    app = run_until_done(
        open_app(
            page="word_senses", **{"word_senses.way": "umap", "word_senses.space": "1", "word_senses.example": "bat"}
        )
    )
    read = word_senses.read(word_senses.example("bat"), 100, 2000)
    wanted = umap(occurrences(bert, read.texts, "bat").vectors[3], 3)
    groups = figure(app, 0)
    assert [group["type"] for group in groups] == ["scatter3d"] * 2
    rows = [index for index, label in enumerate(read.senses) if label == "animal"]
    # The same neighbours lie as near: UMAP itself may take another turn at the last digits.
    assert len(array(groups[0]["z"])) == len(rows) and np.isfinite(array(groups[0]["z"])).all()
    assert abs(np.ptp(array(groups[0]["x"])) - np.ptp(wanted[rows, 0])) < 1 + np.ptp(wanted[:, 0])


def test_own_sentences_without_senses_are_read_too(open_app):
    lines = "They sat on the bench.\nA bench stood there, a long bench.\nNothing here."
    app = run_until_done(
        open_app(
            page="word_senses",
            **{"word_senses.example": "own sentences", "word_senses.word": "bench", "word_senses.lines": lines},
        )
    )
    assert "“bench” 3 times in 3 sentences (1 without it)" in page_text(app)
    assert len(figure(app, 0)) == 1 and "Give at least two senses" in page_text(app)


@pytest.mark.parametrize("most, said", [(3, " (1 without it)"), (2, " (the first ones; 1 more is not read)")])
def test_occurrences_beyond_the_most_are_counted(open_app, monkeypatch, most, said):
    monkeypatch.setattr(pages.representations.word_senses, "_MOST", most)
    lines = "They sat on the bench.\nA bench stood there, a long bench.\nNothing here."
    link = {"word_senses.example": "own sentences", "word_senses.word": "bench", "word_senses.lines": lines}
    app = run_until_done(open_app(page="word_senses", **link))
    assert f"“bench” {most} times in 3 sentences{said}" in page_text(app)


def test_what_is_missing_for_own_sentences_is_said(open_app):
    app = open_app(page="word_senses", **{"word_senses.example": "own sentences"})
    assert "Type a word" in page_text(app) and not app.exception
    app = open_app(
        page="word_senses",
        **{"word_senses.example": "own sentences", "word_senses.word": "zebra", "word_senses.lines": "A cat."},
    )
    for _ in range(100):
        if app.error:
            break
        app.run()
    assert "'zebra' is not in the text" in page_text(app) and not app.exception


def test_a_sentence_that_the_model_cuts_before_the_word_is_told(open_app):
    lines = "They sat on the bench.\n" + "a " * 900 + "bench"
    link = {"word_senses.example": "own sentences", "word_senses.word": "bench", "word_senses.lines": lines}
    app = run_until_done(open_app(page="word_senses", **link))
    assert "(1 without it)" in page_text(app)
    assert "1 sentence is longer than 512 tokens: its end is left out." in page_text(app)


def test_typed_lines_are_read_with_and_without_a_sense():
    read = word_senses.read("river | On the bank.\n\n money|The bank.\nBank only", 2, 8)
    assert read == word_senses.Sentences(("On the b", "The bank"), ("river", "money"), left_out=1, cut=2)
    assert word_senses.read("One\u2028line.\n\u200b\nTwo.", 9, 99).texts == ("One\u2028line.", "Two.")
    assert word_senses.read("\u200b | \u200b\nriver | On the bank.", 9, 99).senses == ("river",)
    for word in word_senses.WORDS:
        actual = word_senses.read(word_senses.example(word), 100, 2000)
        assert len(set(actual.senses)) >= 2 and all(word in text.lower() for text in actual.texts)


def test_too_few_points_for_umap_are_answered_with_a_sentence(open_app):
    link = {
        "word_senses.example": "own sentences",
        "word_senses.word": "cat",
        "word_senses.lines": "A cat.\nThe cat.",
        "word_senses.way": "umap",
    }
    app = open_app(page="word_senses", **link)
    for _ in range(100):
        if app.error or app.warning:
            break
        app.run()
    assert "UMAP needs at least 5" in page_text(app) and not app.exception


@pytest.mark.parametrize(
    "text, runs",
    [
        ("The cat", "ltr"),
        ("שלום world", "rtl"),
        ("مرحبا", "rtl"),
        ("12, שלום", "rtl"),
        ("“Paris” שלום", "ltr"),
        ("[MASK] שלום", "rtl"),
        ("<mask> שלום", "rtl"),
        ("[MASK] city", "ltr"),
        ("中文", "ltr"),
        ("12:30", "ltr"),
        ("", "ltr"),
    ],
)
def test_a_text_runs_as_its_first_letter_does(text, runs):
    assert direction(text) == runs


def test_each_text_is_drawn_the_way_it_runs(open_app):
    link = {"a": "The bunny ate the carrot.", "b": "[MASK] שלום", "mask": "a1"}
    for page in ("predict", "side_by_side", "all_heads"):
        assert component(open_app(page=page, **link), "chips")["directions"] == {"a": "ltr", "b": "rtl"}
    other = {"a": "שלום world", "mask": "a1"}
    assert component(open_app(page="neuron", **other), "neuron")["direction"] == "rtl"
    assert component(open_app(page="architecture", **other), "tower")["direction"] == "rtl"
    app = run_until_done(open_app(page="saliency", **other))
    assert component(app, "marks")["directions"]["a"] == "rtl"
