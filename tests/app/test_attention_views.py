"""The pages about attention, without a browser: what their components get is the library's."""

import base64
import json
from types import SimpleNamespace

import numpy as np
import pytest

from tests.app.page_reading import (
    column,
    component,
    near,
    offered,
    page_text,
    param,
)

PAIR = {"a": "The bunny ate the carrot.", "b": "It was good."}
LONG = {"a": "The bunny ate a carrot today . " * 90}


@pytest.fixture
def model(explorer_home):
    import bert_tf

    return bert_tf.load(explorer_home / "tiny-cased")


@pytest.fixture
def trace(model):
    return model.trace(**{f"text_{name}": text for name, text in PAIR.items()})


def no_trouble(app):
    assert not app.exception and not app.error, page_text(app)
    return app


def parts(base, *shape):
    return np.frombuffer(base64.b64decode(base), np.uint8).reshape(shape)


@pytest.mark.parametrize("page", ["model_view", "neuron", "attention_methods", "head_profiles"])
def test_a_page_opens_with_an_example_and_says_why_without_a_text(open_app, page):
    app = no_trouble(open_app(page=page, model="tiny-uncased"))
    assert app.title
    app.text_area(key="w_text_a").set_value(" ").run()
    assert "Text A is empty" in page_text(app)


@pytest.mark.parametrize("page", ["all_heads", "model_view"])
def test_too_many_masks_are_refused_with_their_number(open_app, page):
    app = no_trouble(open_app(page=page, a="[MASK] " * 9))
    assert "There are 9 masks; at most 6" in page_text(app)
    assert component(app, "lines") is None and component(app, "grid") is None


def test_the_layer_of_a_second_model_is_that_of_side_by_side(monkeypatch):
    from bert_tf.explain import aligned_layers
    from pages.predict import attention_view
    from ui.session import state
    from ui.shell.view import View

    one, other = (SimpleNamespace(num_hidden_layers=layers, num_attention_heads=12) for layers in (12, 6))
    pairs = aligned_layers(12, 6)
    for layer in range(12):
        monkeypatch.setattr(state, "view", lambda layer=layer: View(layer=layer))
        monkeypatch.setattr(state, "setting", lambda name, default: default)
        assert (layer, attention_view._drawn(other, one)[0]) == pairs[layer]


def test_several_heads_have_a_colour_each_and_can_be_taken_away(open_app, trace):
    app = no_trouble(
        open_app(
            page="all_heads",
            layer="2",
            head="3",
            **PAIR,
            **{"all_heads.several": "1", "all_heads.more": "1.1,3.4,9.9,x"},
        )
    )
    heads = component(app, "heads")
    assert [(one["layer"], one["head"]) for one in heads["heads"]] == [(1, 2), (0, 0), (2, 3)]
    lines = component(app, "lines")
    assert len(set(lines["colours"])) == 3 and "3 heads" in page_text(app)
    drawn = parts(lines["bytes"], 3, trace.length, trace.length)
    wanted = trace.attentions[[1, 0, 2], [2, 0, 3]]
    assert np.abs(drawn / 255 - wanted).max() < 0.003
    app.toggle(key="w_several").set_value(False).run()
    assert [(one["layer"], one["head"]) for one in component(app, "heads")["heads"]] == [(1, 2)]


def test_a_heatmap_is_sent_only_when_it_is_looked_at(open_app):
    app = no_trouble(open_app(page="all_heads", **PAIR))
    assert component(app, "lines") and not app.get("plotly_chart")
    app.button_group(key="w_all_heads_as").set_value("map").run()
    assert app.get("plotly_chart") and component(app, "lines") is None
    assert param(app, "all_heads.as") == "map"


def test_punctuation_and_faint_weights_can_be_hidden(open_app):
    app = no_trouble(open_app(page="all_heads", punctuation="0", special="0", **PAIR, **{"all_heads.least": "30"}))
    lines = component(app, "lines")
    assert "." not in lines["left"] and "The" in lines["left"] and lines["least"] == pytest.approx(0.3)
    app.toggle(key="w_punctuation").set_value(True).run()
    assert "." in component(app, "lines")["left"] and param(app, "punctuation") is None


def test_nothing_left_to_show_is_said(open_app):
    app = open_app(page="model_view", a="...", special="0", punctuation="0")
    assert "No token is left" in page_text(app) and component(app, "grid") is None


@pytest.mark.parametrize("page", ["all_heads", "model_view"])
def test_why_attention_is_not_explanation_is_said_once_on_the_page(open_app, page):
    app = no_trouble(open_app(page=page, **PAIR))
    for name in ("Jain and Wallace", "Wiegreffe and Pinter", "Kobayashi"):
        assert page_text(app).count(name) == 1


def test_the_model_view_draws_every_head_and_enlarges_one(open_app, trace):
    app = no_trouble(open_app(page="model_view", **PAIR))
    grid = component(app, "grid")
    assert (grid["layers"], grid["heads"], grid["style"]) == (3, 4, "lines")
    assert grid["sides"] == [source or "" for source in trace.sources]
    drawn = parts(grid["bytes"], 3, 4, trace.length, trace.length) / 255
    peak = trace.attentions.max(axis=(2, 3), keepdims=True)
    assert np.abs(drawn**2 - trace.attentions / peak).max() < 0.01
    zoomed = no_trouble(open_app(page="model_view", layer="2", head="3", **PAIR, **{"model_view.zoom": "1"}))
    assert "Layer 2, head 3" in page_text(zoomed) and component(zoomed, "grid") is None
    assert component(zoomed, "lines")["left"][1] == "The"
    zoomed.button(key="w_model_view_back").click().run()
    assert component(zoomed, "grid")["chosen"] == [{"layer": 1, "head": 2}]


@pytest.mark.parametrize("style", ["lines", "maps"])
def test_the_caption_of_the_sheet_has_two_sentences_and_its_help_says_what_is_left_out(open_app, style):
    app = no_trouble(open_app(page="model_view", **LONG, **{"model_view.as": style}))
    (caption,) = (one for one in app.caption if "Each head is scaled to its own largest weight" in one.value)
    assert caption.value.count(". ") == 1
    assert ("strongest lines" in caption.proto.help) is (style == "lines") and "share a row" in caption.proto.help


def test_the_neuron_view_has_the_heads_vectors_and_weights(open_app, model, trace):
    from bert_tf.explain import head_vectors

    link = {"layer": "3", "head": "2", "neuron.query": "4", **PAIR}
    neuron = component(no_trouble(open_app(page="neuron", **link)), "neuron")
    vectors = head_vectors(model, trace, 2, 1)
    query = np.frombuffer(base64.b64decode(neuron["query_vector"]), "<f4")
    keys = np.frombuffer(base64.b64decode(neuron["key_vectors"]), "<f4").reshape(trace.length, -1)
    np.testing.assert_allclose(query, vectors.queries[4], atol=1e-4)
    np.testing.assert_allclose(keys, vectors.keys, atol=1e-4)
    np.testing.assert_allclose(neuron["scores"], vectors.scores(4), atol=1e-3)
    np.testing.assert_allclose(neuron["weights"], trace.attentions[2, 1, 4], atol=1e-4)
    assert neuron["key"] == int(trace.attentions[2, 1, 4].argmax()) and neuron["token"] == trace.tokens[4]


def test_the_neuron_view_of_a_long_text_has_a_window_that_slides(open_app):
    app = no_trouble(open_app(page="neuron", layer="2", **LONG))
    assert len(component(app, "neuron")["keys"]) == 64
    app.slider(key="w_start").set_value(101).run()
    assert component(app, "neuron")["keys"][0]["position"] == 100


def test_a_link_to_a_token_that_is_not_there_opens_another(open_app):
    for page, setting in (("neuron", "neuron.query"), ("attention_methods", "attention_methods.token")):
        for wanted in {"neuron.query": ("999",), "attention_methods.token": ("-4", "x")}[setting]:
            app = no_trouble(open_app(page=page, **PAIR, **{setting: wanted}))
            assert "The" in page_text(app) or component(app, page)["token"] == "The"


def wait_for(app, name):
    for _ in range(100):
        if component(app, name):
            return app
        app.run()
    raise AssertionError(page_text(app))


def test_methods_stand_side_by_side(open_app, model, trace):
    from bert_tf.explain import attention_flow, token_attention

    app = no_trouble(open_app(page="attention_methods", layer="2", **PAIR, **{"attention_methods.token": "3"}))
    for _ in range(100):
        columns = {one["name"]: one["values"] for one in component(app, "weights")["columns"]}
        if "Flow" in columns:
            break
        app.run()
    actual = token_attention(model, trace, 1, 3)
    flow = attention_flow(trace, 1, [3])[0]
    wanted = {
        "Raw": actual.raw,
        "Effective": actual.effective,
        "Norm-weighted": actual.norm_weighted,
        "Rollout": actual.rollout,
        "Flow": flow / flow.sum(),
    }
    assert list(columns) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_allclose(columns[name], values, atol=1e-3, err_msg=name)
    app.button_group(key="w_attention_methods_of").set_value("head").run()
    columns = {one["name"]: one["values"] for one in component(app, "weights")["columns"]}
    np.testing.assert_allclose(columns["Raw"], trace.attentions[1, 0, 3], atol=1e-4)


def test_the_flow_of_a_long_text_is_left_out_with_a_sentence(open_app):
    app = no_trouble(open_app(page="attention_methods", **LONG))
    assert "Flow" not in [one["name"] for one in component(app, "weights")["columns"]]
    assert "at most 128 tokens; this text has 512" in page_text(app)


def test_what_heads_do_shows_the_chosen_measure_and_a_table(open_app, trace):
    from bert_tf.explain import summarise_heads

    app = wait_for(
        open_app(page="head_profiles", layer="2", head="4", **PAIR, **{"head_profiles.measure": "sep_share"}), "grid"
    )
    summary = summarise_heads(trace)
    grid = component(no_trouble(app), "grid")
    assert grid["texts"] == [f"{value:.2f}" for value in summary.sep_share.ravel()]
    assert grid["chosen"] == [{"layer": 1, "head": 3}] and "Layer 2, head 4" in page_text(app)
    job = app.session_state["_jobs"]["head_profiles"]
    assert (job.done, job.total) == (11, 11)  # each of twelve heads with all after it: what Stop stops between
    table = app.dataframe[0].value
    assert len(table) == 12
    np.testing.assert_allclose(table["entropy"], summary.entropy.ravel(), atol=1e-6)
    app.button(key="w_head_profiles_open").click().run()
    assert (param(app, "page"), param(app, "layer"), param(app, "head")) == ("all_heads", "2", "4")


CONLLU = "".join(
    f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
    for number, (word, head, relation) in enumerate([("The", 2, "det"), ("bunny", 3, "nsubj"), ("ran", 0, "root")], 1)
)


def test_a_parsed_file_adds_syntax(open_app, model, saved):
    from bert_tf.explain import read_conllu, syntax_agreement

    app = open_app(page="head_profiles", **PAIR, **{"head_profiles.of": "file", "head_profiles.measure": "syntax"})
    assert "Upload a file" in page_text(app)
    app.file_uploader(key="w_head_profiles_upload").upload(
        "trees.conllu", f"{CONLLU}\n{CONLLU}\n".encode(), "text/plain"
    ).run()
    wait_for(no_trouble(app), "grid")
    agreement = syntax_agreement(model, read_conllu(f"{CONLLU}\n{CONLLU}\n".splitlines()))
    best = np.maximum(agreement.overall.dependent_to_head, agreement.overall.head_to_dependent)
    assert component(app, "grid")["texts"] == [f"{value:.2f}" for value in best.ravel()]
    relations = app.dataframe[1].value
    assert list(relations["relation"]) == ["det", "nsubj"] and list(relations["count"]) == [2, 2]
    offered(app, saved, ("heads", "syntax"))
    near(saved["syntax"]["npz"]["all_dependent_to_head"], agreement.overall.dependent_to_head)
    near(column(saved["syntax"], "accuracy"), [share / 100 for share in relations["accuracy"]])


def test_the_sample_with_dependencies_stands_in_for_a_file(open_app):
    app = open_app(page="head_profiles", **PAIR, **{"head_profiles.of": "file", "head_profiles.measure": "syntax"})
    app.button(key="w_head_profiles_sample").click().run()
    wait_for(no_trouble(app), "grid")
    assert "Read from trees.conllu. It comes with the explorer." in page_text(app).replace("\\", "")
    assert len(app.dataframe[1].value) > 5  # relations
    assert 'bert_tf.sample_file("trees.conllu")' in app.code[-1].value
    app.button(key="w_head_profiles_forget").click().run()
    assert "Upload a file" in page_text(app)


@pytest.mark.parametrize(
    "name, data, says",
    [
        ("a.conllu", b"1\tThe\n", "CoNLL-U has 10"),
        ("a.conllu", b"# nothing\n", "no sentence in the file"),
        ("a.conllu", b"\xff\xfe\x00", "not text in UTF-8"),
        ("a.txt", b"\n\n", "no text in the file"),
    ],
)
def test_a_file_that_cannot_be_read_is_answered_with_a_sentence(open_app, name, data, says):
    app = open_app(page="head_profiles", **PAIR, **{"head_profiles.of": "file"})
    app.file_uploader(key="w_head_profiles_upload").upload(name, data, "text/plain").run()
    assert says in page_text(app).replace("\\", "") and not app.exception


def test_a_file_of_texts_is_profiled(open_app, model):
    from bert_tf.explain import profile_heads

    texts = ["The bunny ran.", "It ate the carrot today."]
    app = open_app(page="head_profiles", **PAIR, **{"head_profiles.of": "file"})
    app.file_uploader(key="w_head_profiles_upload").upload("a.txt", "\n".join(texts).encode(), "text/plain").run()
    wait_for(no_trouble(app), "grid")
    entropy = profile_heads(model, texts).summary.entropy
    np.testing.assert_allclose(app.dataframe[0].value["entropy"], entropy.ravel(), atol=1e-5)
    assert "2 texts" in page_text(app)


def test_the_file_is_still_there_after_another_page(open_app):
    app = open_app(page="head_profiles", **PAIR, **{"head_profiles.of": "file"})
    app.file_uploader(key="w_head_profiles_upload").upload("a.txt", b"The bunny ran.\nIt ate.", "text/plain").run()
    wait_for(no_trouble(app), "grid")
    grid_texts = component(app, "grid")["texts"]
    for link in ({"page": "all_heads"}, {"page": "head_profiles", "head_profiles.of": "file"}):
        for name, value in link.items():
            app.query_params[name] = value
        no_trouble(app.run())
    wait_for(app, "grid")
    assert "2 texts" in page_text(app) and "Read from a.txt" in page_text(app).replace("\\", "")
    assert component(app, "grid")["texts"] == grid_texts and "Upload a file" not in page_text(app)


def test_a_file_that_is_too_large_is_not_read(open_app, explorer_home, tmp_path, monkeypatch):
    from ui.session import state

    text = (explorer_home / "explorer.toml").read_text() + "\n[files]\nmax_file_kilobytes = 1\n"
    (tmp_path / "small.toml").write_text(text)
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "small.toml"))
    state.limits.clear()
    app = open_app(page="head_profiles", **PAIR, **{"head_profiles.of": "file"})
    assert "at most 1 kB" in app.file_uploader(key="w_head_profiles_upload").label
    app.file_uploader(key="w_head_profiles_upload").upload("a.txt", b"The bunny ran.\n" * 100, "text/plain").run()
    assert "The file has 2 kB; at most 1 kB are read" in page_text(app) and component(app, "grid") is None
    app.file_uploader(key="w_head_profiles_upload").upload("a.txt", b"The bunny ran.\n" * 60, "text/plain").run()
    wait_for(no_trouble(app), "grid")
    assert "60 texts" in page_text(app)


def test_the_threshold_empties_the_heatmap_and_the_sheet(open_app, trace):
    app = no_trouble(open_app(page="all_heads", **PAIR, **{"all_heads.as": "map", "all_heads.least": "15"}))
    z = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]["z"]
    drawn = np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape(trace.length, trace.length)
    assert np.array_equal(np.isnan(drawn), trace.attentions[0, 0] < 0.15) and np.isnan(drawn).any()
    app.slider(key="w_all_heads_least").set_value(0).run()
    z = json.loads(app.get("plotly_chart")[0].proto.spec)["data"][0]["z"]
    assert not np.isnan(np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"])).any()
    for style in ("lines", "maps"):
        app = no_trouble(open_app(page="model_view", **PAIR, **{"model_view.least": "15", "model_view.as": style}))
        small = parts(component(app, "grid")["bytes"], 3, 4, trace.length, trace.length)
        assert np.array_equal(small > 0, trace.attentions >= 0.15)
