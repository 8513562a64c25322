"""Copy as Python: the lines of a page run as they stand, and have the numbers that the page shows."""

import base64
import json
import os
import re
import shlex
import shutil

import numpy as np
import pytest

import bert_tf
from tests.app.page_reading import component, components, page_text, run_until_done
from ui.session import state
from ui.shell.catalogue import pages

PAIR = {"a": 'The "bunny" ate {the} carrot.', "b": "It was good."}
NO_LINES = {"guide", "glossary", "guided_lessons", "models"}  # nothing is computed there


@pytest.fixture(scope="module", autouse=True)
def models_loaded_once():
    """The lines of all tests share the models that they load."""
    load, models = bert_tf.load, {}

    def load_once(name, **options):
        key = os.environ["BERT_TF_HOME"], name, tuple(options.items())
        if key not in models:
            models[key] = load(name, **options)
        return models[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bert_tf, "load", load_once, raising=False)
        yield


def ran(app):
    """What the lines of a page leave behind: dict of names; without a menu the test fails."""
    names = {}
    exec(run_until_done(app).code[-1].value, names)
    return names


def figures(app):
    return [json.loads(one.proto.spec) for one in app.get("plotly_chart")]


def array(value):
    """An array out of a figure's description."""
    if not isinstance(value, dict):
        return np.array(value)
    flat = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
    return flat.reshape([int(size) for size in value["shape"].split(",")]) if "shape" in value else flat


def of_job(app, name):
    """What a page's work beside it gave."""
    return app.session_state["_jobs"][name].result


def kept(app, name):
    """What a page has worked out and kept."""
    return app.session_state["_kept"]._places[name].value


def test_every_page_with_something_to_compute_has_lines():
    assert {name for name, page in pages().items() if page.snippet is None} == NO_LINES


ONE = {"a": "The bunny ate it."}


@pytest.mark.parametrize(
    "page, texts",
    [
        ("predict", ONE),
        ("logit_lens", ONE),
        ("side_by_side", ONE),
        ("side_by_side", PAIR),
        ("ablation", PAIR),
        ("saliency", PAIR),
        ("counterfactuals", PAIR | {"counterfactuals.kind": "less"}),
        ("counterfactuals", PAIR | {"counterfactuals.kind": "swap"}),
    ],
)
def test_the_lines_run_where_nothing_is_hidden(page, texts, capsys, open_app):
    ran(open_app(page=page, model="tiny-cased", **texts))
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", ["predict", "ablation", "saliency", "patching", "all_heads"])
def test_where_nothing_is_shown_there_are_no_lines(page, open_app):
    assert not open_app(page=page, a=" ").code
    assert page in ("predict", "all_heads") or not open_app(page=page, a="The bunny ate it.").code


# Predict


def test_guesses_are_those_of_the_page(open_app):
    app = open_app(page="predict", **PAIR, mask="a2,b2", top="3")
    names = ran(app)
    for card, mask in zip(component(app, "bars")["cards"], names["bert"].fill_mask(names["trace"], 3), strict=True):
        assert [one["text"] for one in card["predictions"]] == [one.token for one in mask.predictions]
    assert names["trace"].nsp.is_next == pytest.approx(component(app, "gauge")["is_next"], abs=1e-5)


def test_masks_filled_the_surest_first_are_so_in_the_lines(open_app):
    app = open_app(page="predict", **PAIR, mask="a2,b2", fill="joint")
    cards, filled = component(app, "bars")["cards"], ran(app)["filled"]
    assert [one["position"] for one in cards] == [step.position for step in filled.steps]
    assert [one["predictions"][0]["p"] for one in cards] == pytest.approx(
        [step.predictions[0].probability for step in filled.steps], abs=1e-5
    )


@pytest.mark.parametrize("fill", ["independent", "joint"])
def test_words_asked_about_are_so_in_the_lines(open_app, capsys, fill):
    app = open_app(page="predict", **PAIR, mask="a2,b2", fill=fill, **{"predict.ask": "rabbit, house"})
    cards = component(app, "bars")["cards"]
    capsys.readouterr()
    ran(app)
    output = capsys.readouterr().out
    for card in cards:
        assert len(card["asked"]) == 2
        for one in card["asked"]:
            assert f"('{one['text']}', {one['rank'].replace(',', '')}, {round(one['p'], 5)}" in output


@pytest.mark.parametrize("fill", ["independent", "joint"])
@pytest.mark.parametrize("mean", ["0", "1"])
def test_two_models_that_are_compared_are_both_in_the_lines(open_app, capsys, fill, mean):
    link = {"with": "tiny-uncased", "predict.compare": "1", "predict.ask": "rabbit", "predict.mean": mean}
    app = open_app(page="predict", model="tiny-cased", **PAIR, mask="a2,b2", layer="3", head="2", fill=fill, **link)
    bars, drawn = components(app, "bars"), components(app, "lines")
    capsys.readouterr()
    names = ran(app)
    blocks = re.split("^(?:tiny-cased|tiny-uncased)\n", capsys.readouterr().out, flags=re.MULTILINE)[1:]
    for variable, cards, gauge, lines, block in zip(
        ("trace", "other"), bars, components(app, "gauge"), drawn, blocks, strict=True
    ):
        trace = names[variable]
        assert trace.nsp.is_next == pytest.approx(gauge["is_next"], abs=1e-5)
        for card in cards["cards"]:
            best = card["predictions"][0]
            assert f"{card['position']} [('{best['text']}', {round(best['p'], 3)})" in block
        assert block.count(" -> ") == trace.length == len(lines["left"])
        assert list(trace.tokens) == lines["left"]
    on_page = np.frombuffer(base64.b64decode(drawn[1]["bytes"]), np.uint8)
    np.testing.assert_allclose(on_page / 255, names["weights"].ravel(), atol=3e-3)


def test_a_model_computes_in_the_page_s_precision(open_app):
    app = open_app(page="side_by_side", a="The bunny ate it.", mask="a1", precision="bfloat16")
    assert run_until_done(app).code[-1].value.count("precision='bfloat16'") == 2


# Attention


def test_all_open_heads_and_the_filters_are_in_the_lines(open_app, capsys):
    link = {"all_heads.several": "1", "all_heads.more": "1.1,3.4", "all_heads.least": "20"}
    app = open_app(page="all_heads", layer="2", head="3", **PAIR, show="ab", special="0", punctuation="0", **link)
    names, drawn = ran(app), component(app, "lines")
    values = np.frombuffer(base64.b64decode(drawn["bytes"]), np.uint8).reshape(3, len(drawn["left"]), -1)
    selection, trace = names["selection"], names["trace"]
    assert [trace.tokens[at] for at in selection.rows] == drawn["left"]
    weights = [trace.attentions[place][np.ix_(selection.rows, selection.columns)] for place in ((1, 2), (0, 0), (2, 3))]
    np.testing.assert_allclose(values / 255, weights, atol=3e-3)
    stdout_text = capsys.readouterr().out
    assert stdout_text.count("(") == sum(int((part >= 0.2).sum()) for part in weights)


@pytest.mark.parametrize("words", ["0", "1"])
def test_both_drawings_of_a_pair_are_in_the_lines(open_app, capsys, words):
    link = {"all_heads.both": "1", "all_heads.words": words}
    app = open_app(page="all_heads", layer="2", head="3", **PAIR, special="0", **link)
    drawn, names = components(app, "lines"), ran(app)
    printed = capsys.readouterr().out.splitlines()
    tokens = names["trace"].tokens
    assert [line.split()[0] for line in printed] == drawn[0]["left"] + drawn[1]["left"]
    for side, line in zip(drawn, (printed[0], printed[-1]), strict=True):
        assert re.findall(r"\(['\"](.+?)['\"], ", line) == side["right"] and len(side["right"]) < len(tokens)
    values = np.frombuffer(base64.b64decode(drawn[1]["bytes"]), np.uint8)
    part = names["weights"][np.ix_(names["selection"].rows, names["selection"].columns)]
    np.testing.assert_allclose(values / 255, part.ravel(), atol=3e-3)


def test_the_attention_of_words_is_in_the_lines(open_app):
    app = open_app(page="all_heads", layer="2", head="3", a="The bunny ate the carrot.", **{"all_heads.words": "1"})
    names, drawn = ran(app), component(app, "lines")
    assert drawn["left"] == ["[CLS]", "The", "bunny", "ate", "the", "carrot", ".", "[SEP]"]
    values = np.frombuffer(base64.b64decode(drawn["bytes"]), np.uint8).reshape(8, 8)
    np.testing.assert_allclose(values / 255, names["trace"].attentions[1, 2], atol=3e-3)
    assert names["trace"].tokens == tuple(drawn["left"])
    plain = open_app(page="all_heads", layer="2", head="3", a="The bunny ate the carrot.")
    assert len(component(plain, "lines")["left"]) > 8


def test_of_a_long_text_the_window_is_in_the_lines(open_app):
    app = open_app(page="all_heads", a="The bunny ate a carrot today . " * 20, **{"from": "30"})
    names = ran(app)
    assert [names["trace"].tokens[at] for at in names["selection"].rows] == component(app, "lines")["left"]


def test_the_model_view_enlarged_is_one_head(open_app):
    app = open_app(page="model_view", **PAIR, layer="3", head="2", **{"model_view.zoom": "1"})
    names = ran(app)
    assert (names["layer"], names["head"]) == (2, 1)
    drawn = np.frombuffer(base64.b64decode(component(app, "lines")["bytes"]), np.uint8)
    np.testing.assert_allclose(drawn / 255, names["weights"].ravel(), atol=3e-3)


def test_the_sheet_names_the_strongest_place_of_every_head(open_app, capsys):
    names = ran(open_app(page="model_view", **PAIR))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 * 4 and f"{names['trace'].attentions[0, 0].max():.3f}" in lines[0]


def test_the_neuron_view_s_own_token_and_key_are_in_the_lines(open_app):
    app = open_app(page="neuron", **PAIR, layer="2", head="4", **{"neuron.query": "4", "neuron.key": "2"})
    names, neuron = ran(app), component(app, "neuron")
    assert (names["query"], names["key"]) == (neuron["query"], neuron["key"]) == (4, 2)
    np.testing.assert_allclose(neuron["weights"], names["weights"], atol=1e-3)


@pytest.mark.parametrize("of", ["layer", "head"])
def test_methods_are_those_of_the_chosen_token(open_app, of):
    link = {"attention_methods.token": "4", "attention_methods.of": of}
    app = open_app(page="attention_methods", **PAIR, layer="2", head="3", **link)
    names = ran(app)
    assert names["result"].position == 4 and names["result"].head == (2 if of == "head" else None)
    for column, values in zip(component(app, "weights")["columns"], names["result"].methods.values(), strict=True):
        np.testing.assert_allclose(column["values"], values, atol=2e-3)


def test_the_measure_of_the_heads_is_the_chosen_one(open_app, capsys):
    app = open_app(page="head_profiles", **PAIR, **{"head_profiles.measure": "previous_share"})
    values = ran(app)["result"].summary.previous_share
    np.testing.assert_allclose(of_job(app, "head_profiles").summary.previous_share, values, atol=1e-5)
    assert str(values.round(2)) in capsys.readouterr().out


TEXTS = b"text_a,text_b\nThe bunny ate it.,It was good.\nA dog slept.,\n"
TREE = "".join(
    f"{n}\t{w}\t_\t_\t_\t_\t{h}\t{r}\t_\t_\n"
    for n, w, h, r in ((1, "The", 2, "det"), (2, "bunny", 3, "nsubj"), (3, "ate", 0, "root"), (4, "it", 3, "obj"))
).encode()


@pytest.mark.parametrize(
    "name, data, link",
    [
        ("theirs.csv", TEXTS, {}),
        ("theirs.conllu", TREE, {"head_profiles.measure": "syntax"}),
        ("theirs.conllu", TREE, {}),
        ("tags.conllu", b"1\tThe\t_\tDET\t_\t_\t_\t_\t_\t_\n", {"head_profiles.measure": "syntax"}),
    ],
)
def test_a_file_of_heads_is_read_under_its_name(open_app, tmp_path, monkeypatch, name, data, link):
    app = open_app(page="head_profiles", a="The bunny ate it.", **{"head_profiles.of": "file"}, **link)
    app.file_uploader(key="w_head_profiles_upload").upload(name, data, "text/plain").run()
    (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    names, actual = ran(app), of_job(app, "head_profiles")
    assert actual.num_texts == names["result"].num_texts
    np.testing.assert_allclose(names["result"].distances, actual.distances, atol=1e-5)
    assert (actual.syntax is None) == (names["result"].syntax is None)
    if actual.syntax is not None:
        np.testing.assert_allclose(
            names["result"].syntax.overall.head_to_dependent, actual.syntax.overall.head_to_dependent
        )


# Why


def test_the_lens_follows_the_word_at_the_open_token(open_app):
    app = open_app(
        page="logit_lens",
        **PAIR,
        mask="a2",
        **{"logit_lens.rows": "all", "logit_lens.at": "4", "logit_lens.follow": "good"},
    )
    names = ran(app)
    assert component(app, "cells")["texts"] == [best[0] for line in names["lens"].predicted_tokens for best in line]
    np.testing.assert_array_equal(array(figures(app)[0]["data"][0]["y"]), names["one"].answer_ranks[0])


def test_what_is_switched_off_is_in_the_lines(open_app):
    link = {"ablation.off": "1-2.f_3-x", "ablation.tokens": "2"}
    app = open_app(page="ablation", **PAIR, mask="a2,b2", **link)
    effect, job_result = ran(app)["effect"], kept(run_until_done(app), "ablate")
    assert effect.ablation == job_result.ablation and effect.ablation.layers == (2,)
    np.testing.assert_allclose(effect.log_probability_changes, job_result.log_probability_changes, atol=1e-4)
    np.testing.assert_allclose(effect.attention_shifts, job_result.attention_shifts, atol=1e-4)
    assert component(app, "gauge")["is_next"] == pytest.approx(effect.nsp_after.is_next, abs=1e-5)


@pytest.mark.parametrize(
    "link",
    [
        {},
        {"ablation.on": "next"},
        {"ablation.kind": "tokens"},
        {"ablation.kind": "blocks", "ablation.on": "next"},
    ],
)
def test_the_strongest_parts_are_the_page_s(open_app, link):
    app = open_app(page="ablation", **PAIR, mask="a2,b2", **{"ablation.colour": "effect", **link})
    lost = ran(app)["lost"]
    on_page = array(figures(app)[0]["data"][0]["x"])
    assert sorted(on_page) == pytest.approx(sorted(lost[np.argsort(-abs(lost))[:15]]), abs=1e-4)


@pytest.mark.parametrize(
    "link",
    [
        {},
        {"saliency.method": "gradient-x-input", "saliency.token": "good"},
        {
            "saliency.method": "occlusion",
            "saliency.instead": "[PAD]",
            "saliency.of": "next",
            "saliency.follows": "NotNext",
        },
        {"saliency.steps": "8", "saliency.from": "[MASK]", "saliency.of": "9"},
        {"saliency.method": "smoothgrad", "saliency.steps": "16", "saliency.noise": "0.05"},
        {"saliency.method": "deeplift", "saliency.from": "[MASK]", "saliency.of": "next"},
        {"saliency.method": "deeplift", "saliency.from": "sentences", "saliency.references": "4"},
        {"saliency.method": "lrp", "saliency.token": "good"},
        {"saliency.method": "lime", "saliency.samples": "64", "saliency.instead": "[PAD]"},
    ],
)
def test_words_are_scored_by_the_chosen_method_for_the_chosen_answer(open_app, link):
    app = open_app(page="saliency", **PAIR, mask="a2,b1", **link)
    actual, job_result = (
        ran(app)["result"],
        of_job(app, f"saliency {link.get('saliency.method', 'integrated-gradients')}"),
    )
    assert (actual.method, actual.target) == (job_result.method, job_result.target)
    assert actual.log_probability == pytest.approx(job_result.log_probability, abs=1e-4)
    assert actual.weighted_r2 == pytest.approx(job_result.weighted_r2, abs=1e-4)
    np.testing.assert_allclose(actual.scores, job_result.scores, atol=1e-4)
    assert (actual.rest is None) == (job_result.rest is None) == ("lrp" not in link.values())


@pytest.mark.parametrize("link", [{}, {"saliency.of": "next", "saliency.flips": "1", "saliency.tried": "1"}])
def test_changed_words_are_those_of_the_page(open_app, link, capsys):
    app = open_app(page="saliency", **PAIR, mask="a2", **{"saliency.method": "hotflip", **link})
    actual, job_result = ran(app)["result"], of_job(app, "saliency hotflip")
    assert actual.target == job_result.target and actual.flipped == job_result.flipped
    for name in ("applied", "tried"):
        assert [(one.word, one.new) for one in getattr(actual, name)] == [
            (one.word, one.new) for one in getattr(job_result, name)
        ]
    assert capsys.readouterr().out.count("\n") == 1 + len(job_result.applied) + len(job_result.tried)


@pytest.mark.parametrize("link", [{}, {"saliency.of": "next"}])
def test_words_that_stay_are_those_of_the_page(open_app, link):
    app = open_app(
        page="saliency",
        a="The bunny ate it.",
        b="It was good.",
        mask="a2",
        **{"saliency.method": "input-reduction", **link},
    )
    actual, job_result = ran(app)["result"], of_job(app, "saliency input-reduction")
    assert actual.target == job_result.target and actual.remaining == job_result.remaining
    assert [one.word for one in actual.removed] == [one.word for one in job_result.removed]


@pytest.mark.parametrize("link", [{}, {"contributions.token": "good"}, {"contributions.of": "next"}])
def test_contributions_are_asked_of_the_chosen_answer(open_app, link):
    app = open_app(page="contributions", a="The bunny ate it.", b="It was good.", mask="a2", **link)
    actual, job_result = ran(app)["result"], of_job(app, "contributions")
    assert actual.target == job_result.target
    np.testing.assert_allclose(actual.heads, job_result.heads, atol=1e-5)


@pytest.mark.parametrize(
    "link",
    [
        {"patching.token": "good"},
        {"patching.of": "next", "patching.follows": "NotNext"},
        {"patching.part": "attention"},
        {"patching.part": "feed_forward"},
        {"patching.part": "head"},
        {"patching.part": "head", "patching.place": "3"},
    ],
)
def test_patching_asks_about_the_chosen_answer(open_app, link):
    texts = {"a": "The bunny ate it.", "b": "It was good."}
    app = open_app(page="patching", **texts, mask="a3", **{"patching.a": "The bunny was it."}, **link)
    actual, job_result = ran(app)["result"], of_job(app, f"patching {link.get('patching.part', 'state')}")
    assert (actual.target, actual.component, actual.position) == (
        job_result.target,
        job_result.component,
        job_result.position,
    )
    np.testing.assert_allclose(actual.scores, job_result.scores, atol=1e-4)


@pytest.mark.parametrize(
    "link",
    [
        {},
        {"patching.of": "next", "patching.into": "feed_forward", "patching.layer": "2"},
        {"patching.into": "queries", "patching.head": "3", "patching.place": "1"},
    ],
)
def test_paths_lead_to_the_chosen_receiver(open_app, link):
    texts = {"a": "The bunny ate it.", "b": "It was good."}
    link = {"patching.a": "The bunny was it.", "patching.part": "path", **link}
    app = open_app(page="patching", **texts, mask="a3", **link)
    actual, job_result = ran(app)["result"], of_job(app, "patching path")
    for name in ("target", "receiver", "position"):
        assert getattr(actual, name) == getattr(job_result, name)
    assert (actual.receiver is None) == ("patching.into" not in link)
    np.testing.assert_allclose(actual.scores, job_result.scores, atol=1e-4)
    assert actual.embeddings == pytest.approx(job_result.embeddings, abs=1e-4)


def test_both_halves_of_the_chosen_mask_are_asked(open_app, explorer_home):
    at = bert_tf.load(explorer_home / "tiny-cased").trace(PAIR["a"], PAIR["b"]).length - 3  # "good"
    app = open_app(page="counterfactuals", **PAIR, mask="a2,b2", **{"counterfactuals.at": str(at)})
    names, cards = ran(app), component(app, "bars")["cards"]
    assert names["whole"].position == at and names["trace"].masks[0] < at
    assert [one["text"] for one in cards[0]["predictions"]] == [one.token for one in names["whole"].predictions]
    outcomes = kept(app, "counterfactuals_sides")
    assert [one.tokens for one in names["variants"]] == [one.variant.tokens for one in outcomes]


def test_every_word_left_out_has_the_page_s_numbers(open_app, capsys):
    app = open_app(page="counterfactuals", **PAIR, mask="a2", **{"counterfactuals.kind": "less"})
    ran(app)
    stdout_text = capsys.readouterr().out
    for row in app.dataframe[0].value.itertuples():
        assert f"{row.word} {row.prediction} {row.change:.3g}"[:8] in stdout_text


@pytest.mark.parametrize(
    "link",
    [
        {"counterfactuals.kind": "word", "counterfactuals.word": "b2", "counterfactuals.with": "bad dog"},
        {"counterfactuals.kind": "swap"},
    ],
)
def test_another_word_and_a_swap_are_asked_as_on_the_page(open_app, link):
    app = open_app(page="counterfactuals", **PAIR, mask="a2", **link)
    outcome, (change,) = ran(app)["outcome"], kept(run_until_done(app), "counterfactuals_change")
    assert outcome.variant.tokens == change.variant.tokens and outcome.variant.label == change.variant.label
    np.testing.assert_allclose(outcome.log_probability_changes, change.log_probability_changes, atol=1e-4)
    assert outcome.nsp.is_next == pytest.approx(component(app, "gauge")["is_next"], abs=1e-5)


def test_the_minimal_pair_is_the_visitor_s(open_app):
    link = {
        "counterfactuals.kind": "pairs",
        "counterfactuals.good": "The bunny ate.",
        "counterfactuals.bad": "The bunny eat.",
    }
    app = open_app(page="counterfactuals", a="The bunny ate it.", **link)
    assert ran(app)["pair"].margin == pytest.approx(of_job(app, "counterfactuals_pair").margin, abs=1e-3)


def test_the_minimal_pairs_of_the_lines_are_the_page_s_and_need_no_folder_of_the_project(open_app):
    link = {"counterfactuals.kind": "pairs", "counterfactuals.all": "1"}
    app = open_app(page="counterfactuals", a="The bunny ate it.", **link)
    names, code = ran(app), app.code[-1].value
    on_page = app.dataframe[0].value
    assert names["pairs"] == list(zip(on_page["good"], on_page["bad"]))
    assert names["one"].margin == pytest.approx(on_page["margin"].iloc[-1], abs=1e-3)
    assert not {"ui", "pages"} & {line.split()[1].split(".")[0] for line in code.splitlines() if " import " in line}


# Words


def test_the_chosen_vectors_of_the_window_are_compared(open_app):
    link = {"input_embeddings.start": "20", "input_embeddings.of": "segment"}
    app = open_app(page="input_embeddings", a="The bunny ate a carrot . " * 30, **link)
    names = ran(app)
    assert list(names["drawn"]) == list(range(19, 67))
    on_page, vectors = array(figures(app)[0]["data"][0]["x"]), names["result"]
    np.testing.assert_allclose(on_page, vectors.shares[0, 19:67], atol=1e-4)


OWN = "river | They sat on the bank.\nmoney | She went to the bank.\nriver | The bank was green. A bank!"


def test_meaning_reads_the_visitor_s_own_sentences(open_app):
    link = {
        "word_senses.example": "own sentences",
        "word_senses.word": "bank",
        "word_senses.lines": OWN,
        "word_senses.layer": "1",
        "word_senses.space": "1",
    }
    app = open_app(page="word_senses", **link)
    names = ran(app)
    assert len(names["texts"]) == 3 and names["result"].texts == of_job(app, "word_senses own sentences").texts
    np.testing.assert_allclose(names["vectors"], of_job(app, "word_senses own sentences").vectors[1], atol=1e-4)
    points = {group["name"]: array(group["z"]) for group in figures(app)[0]["data"]}
    river = [place for place, text in zip(names["places"], names["result"].texts) if names["senses"][text] == "river"]
    np.testing.assert_allclose(points["river"], np.array(river)[:, 2], atol=1e-3)
    np.testing.assert_allclose(array(figures(app)[2]["data"][0]["y"]), names["apart"].nearest)


def test_meaning_by_tsne_is_in_the_lines(open_app):
    app = open_app(page="word_senses", **{"word_senses.way": "tsne", "word_senses.space": "1"})
    names = ran(app)
    assert "project_to_plane(vectors, way='tsne', dimensions=3)" in app.code[0].value
    assert names["places"].shape == of_job(app, "word_senses bank_places")[0].shape == (len(names["texts"]), 3)


def test_meaning_of_an_example_is_read_from_its_file(open_app):
    app = open_app(page="word_senses", **{"word_senses.example": "bat", "word_senses.way": "umap"})
    names = ran(app)
    assert names["result"].texts == of_job(app, "word_senses bat").texts
    np.testing.assert_allclose(names["vectors"], of_job(app, "word_senses bat").vectors[3], atol=1e-4)
    # UMAP itself may take another turn at the last digits.
    assert "project_to_plane(vectors, way='umap')" in app.code[0].value
    assert names["places"].shape == kept(app, "word_senses bat_places")[0].shape


def test_neighbours_are_those_of_the_open_cell(open_app):
    link = {"nearest_words.at": "2", "nearest_words.vector": "3", "nearest_words.centred": "0"}
    app = open_app(page="nearest_words", **PAIR, **link)
    names = ran(app)
    table = app.dataframe[1].value
    assert list(table["word"]) == [one.token for one in names["near"]]
    np.testing.assert_allclose(table["cosine"], [one.similarity for one in names["near"]], atol=1e-4)


def test_the_places_of_a_file_are_those_of_the_open_cell(open_app, capsys):
    link = {
        "nearest_words.at": "2",
        "nearest_words.vector": "3",
        "nearest_words.among": "text",
        "nearest_words.file": "facts.csv",
    }
    app = open_app(page="nearest_words", **PAIR, **link)
    (near,) = ran(app)["result"].nearest
    table = app.dataframe[0].value
    assert list(table["word"]) == [one.word.text for one in near]
    np.testing.assert_allclose(table["cosine"], [one.similarity for one in near], atol=1e-4)
    assert f"{near[0].parts[0]}[{near[0].word.text}]" in capsys.readouterr().out


def test_the_places_of_one_head_and_their_parts_of_speech(open_app, with_tasks, task_home, monkeypatch, capsys):
    monkeypatch.setattr("pages.representations.nearest_contexts.TAGGER", "words")
    link = {"nearest_words.at": "2", "nearest_words.vector": "2", "nearest_words.among": "text"}
    link |= {"nearest_words.head": "2", "nearest_words.tags": "1"}
    app = run_until_done(open_app(page="nearest_words", **PAIR, **link))
    names, table = ran(app), app.dataframe[0].value
    (near,) = names["result"].nearest
    assert [word.strip("«»") for word in table["word"]] == [one.word.text for one in near]
    assert list(table["tag"]) == list(names["tags"])
    np.testing.assert_allclose(table["cosine"], [one.similarity for one in near], atol=1e-4)
    assert "nearest(bert, trace, rows, positions=(2,), top_k=20, layer=0, heads=(1,))" in app.code[0].value
    assert list(table["looked_tag"]) == list(names["tags_there"])
    assert "head 2 of layer 1" in app.code[0].value and f"'{names['tags'][0]}'" in capsys.readouterr().out


@pytest.mark.parametrize("own", [False, True])
def test_the_places_of_several_heads_and_what_a_file_with_trees_says(open_app, own, tmp_path, monkeypatch):
    link = {
        "nearest_words.at": "2",
        "nearest_words.vector": "3",
        "nearest_words.among": "text",
        "nearest_words.head": "2,4",
    }
    link |= {"nearest_words.file": "upload" if own else "trees.conllu"} | ({"special": "0"} if own else {})
    app = open_app(page="nearest_words", **PAIR, **link)
    if own:
        app.file_uploader(key="w_nearest_words_upload").upload("theirs.conllu", TREE, "text/plain").run()
        (tmp_path / "theirs.conllu").write_bytes(TREE)
        monkeypatch.chdir(tmp_path)
    table = run_until_done(app).dataframe[0].value
    names = ran(app)
    np.testing.assert_allclose(table["cosine"], [one.similarity for one in names["near"]], atol=1e-4)
    assert list(table["looks_at"]) == [one.token for one in names["looked"]]
    assert ("[SEP]" in set(table["looks_at"])) is not own
    output = [names[name] for name in ("tags", "relations", "tags_there", "relations_there")]
    for name, labels in zip(("tag", "relation", "looked_tag", "looked_relation"), output, strict=True):
        if own and name.endswith("tag"):
            assert name not in table  # the uploaded file knows no parts of speech
        else:
            assert list(table[name]) == [label or "" for label in labels]
    assert "heads 2, 4 of layer 2 put together" in app.code[0].value


@pytest.mark.parametrize(
    "link",
    [{}, {"factors.count": "3", "factors.layers": "2-3", "factors.at": "2"}, {"special": "0", "factors.layers": "1"}],
)
def test_factors_are_of_the_chosen_layers_and_tokens(open_app, link, capsys):
    app = open_app(page="factors", **PAIR, mask="a2", **link)
    actual, job_result = ran(app)["result"], of_job(app, "factors")
    np.testing.assert_allclose(actual.weights, job_result.weights, atol=1e-3)
    np.testing.assert_allclose(actual.unit_weights, job_result.unit_weights, atol=1e-3)
    stdout_text = capsys.readouterr().out
    printed = [line.split() for line in stdout_text.splitlines()[-len(app.dataframe[0].value) :]]
    for row, line in zip(app.dataframe[0].value.itertuples(), printed, strict=True):
        assert [int(one) for one in line[:2]] == [row.layer - 1, row.unit - 1]
        assert float(line[2]) == pytest.approx(row.weight, abs=1e-3)


# Compare


def test_two_texts_and_a_head_are_compared(open_app):
    link = {
        "side_by_side.what": "texts",
        "side_by_side.a": "The carrot ate the bunny.",
        "side_by_side.mask": "a1",
        "side_by_side.head": "2",
        "with": "not-here",
        "depth": "0",
        "side_by_side.drawn": "difference",
    }
    app = open_app(page="side_by_side", a="The bunny ate the carrot.", mask="a1", **link)
    names = ran(app)
    table = app.dataframe[0].value
    assert list(table["divergence"]) == pytest.approx([mask.divergence for mask in names["result"].masks], abs=1e-5)
    assert names["other"].text_a == "The carrot ate the bunny." and names["second"] is names["bert"]
    on_page = array(figures(app)[0]["data"][0]["z"])
    assert abs(on_page).max() > 0.01
    np.testing.assert_allclose(on_page, names["one"] - names["two"], atol=1e-3)


def test_a_window_of_a_long_difference_is_in_the_lines(open_app):
    link = {"side_by_side.drawn": "difference", "with": "tiny-cased", "from": "10", "side_by_side.head": "2"}
    app = open_app(page="side_by_side", a="The bunny ate a carrot today . " * 12, **link)
    names = ran(app)
    assert array(figures(app)[0]["data"][0]["z"]).shape == names["two"].shape == (64, 64)
    assert any(np.array_equal(names["one"], layer[1, 9:73, 9:73]) for layer in names["trace"].attentions)


@pytest.mark.parametrize("start", ["4", "31"])
def test_the_lines_print_the_tokens_that_are_drawn_of_texts_of_two_lengths(open_app, start):
    sentence = "The bunny ate a carrot today . "
    link = {
        "side_by_side.drawn": "lines",
        "side_by_side.what": "texts",
        "side_by_side.a": sentence * 7,
        "side_by_side.head": "2",
    }
    app = open_app(page="side_by_side", a=sentence * 14, **{"from": start}, **link)
    names = ran(app)
    for drawn, weights in zip(components(app, "lines"), (names["one"], names["two"]), strict=True):
        on_page = np.frombuffer(base64.b64decode(drawn["bytes"]), np.uint8)
        assert weights.shape == (64, 64)
        np.testing.assert_allclose(on_page / 255, weights.ravel(), atol=3e-3)


def test_layers_of_two_models_are_compared(open_app):
    link = {"with": "tiny-uncased", "side_by_side.look": "layers"}
    app = open_app(page="side_by_side", a="The bunny ate it.", mask="a1", **link)
    lenses = ran(app)["lenses"]
    for curve, lens in zip(figures(app)[-1]["data"], lenses, strict=True):
        np.testing.assert_allclose(array(curve["y"]), lens.answer_probabilities[0], atol=1e-4)


@pytest.mark.parametrize(
    "link",
    [
        {"layer_similarity.source": "view", "mask": "a1"},
        {"layer_similarity.source": "view", "b": "\u200b"},
        {"layer_similarity.file": "pairs.jsonl"},
        {
            "layer_similarity.file": "typed",
            "layer_similarity.lines": "The bunny ate it today.\n\nIt was good\tand so on.",
        },
        {"layer_similarity.source": "view", "b": "It was good.", "layer_similarity.measure": "svcca"},
        {"layer_similarity.file": "pairs.jsonl", "layer_similarity.measure": "pwcca"},
    ],
)
def test_layer_likeness_is_of_the_chosen_texts(open_app, link, capsys):
    app = open_app(page="layer_similarity", a="The bunny ate it.", **{"with": "tiny-uncased"}, **link)
    ran(app)
    on_page = of_job(app, link.get("layer_similarity.measure", "cka")).similarity
    assert capsys.readouterr().out.strip() == str(on_page.round(3))


@pytest.mark.usefixtures("with_tasks")
@pytest.mark.parametrize("model, left_out", [("classes", [1, 2, 3]), ("plain", [2])])
def test_layer_likeness_leaves_out_the_text_b_that_a_model_does_not_read(open_app, model, left_out, monkeypatch):
    from ui.session import model_store

    monkeypatch.setattr(model_store, "leaves_out_text_b", lambda bert: bert.name == "classes")
    lines = "The bunny ate it.\tIt slept.\nIt was good.\t\u200b\nThe dog ran.\tThe cat sat."
    link = {"layer_similarity.file": "typed", "layer_similarity.lines": lines, "with": "either"}
    app = open_app(page="layer_similarity", model=model, **link)
    names = ran(app)
    assert [row.number for row in names["rows"] if row.text_b is None] == left_out
    np.testing.assert_allclose(names["result"].similarity, of_job(app, "cka").similarity, atol=1e-5)
    assert names["result"].words == of_job(app, "cka").words and not names["result"].problems
    rows = f"{len(left_out)} row{'s' * (len(left_out) > 1)}"
    assert f"Text B of {rows} is left out: one of the models does not read it." in page_text(app)


@pytest.mark.parametrize(
    "link",
    [
        {},
        {"agreement.file": "facts.csv", "agreement.hide": "given", "agreement.second": ""},
        {
            "agreement.file": "typed",
            "agreement.lines": "The bunny ate it.\n\nA dog slept there.",
            "agreement.hide": "last",
        },
    ],
)
def test_agreement_is_over_the_chosen_file(open_app, link):
    app = open_app(page="agreement", **{"with": "tiny-uncased", "top": "3"}, **link)
    actual, job_result = ran(app)["result"], of_job(app, "agreement")
    assert [one.row for one in actual.rows] == [one.row for one in job_result.rows]
    assert (actual.same_top_prediction, actual.divergence) == pytest.approx(
        (job_result.same_top_prediction, job_result.divergence), abs=1e-4
    )


# Data


@pytest.mark.parametrize(
    "link",
    [
        {},
        {"dataset.file": "pairs.jsonl", "dataset.ask": "next"},
        {"dataset.file": "facts.csv", "dataset.hide": "last"},
        {"dataset.file": "facts.csv", "dataset.first": "mask"},
    ],
)
def test_a_sample_is_asked_as_on_the_page(open_app, link):
    app = open_app(page="dataset", top="3", **link)
    same_answers(ran(app)["results"], of_job(app, "dataset"))


@pytest.mark.parametrize("way", ["pca", "umap", "tsne"])
def test_the_map_of_a_file_s_rows_is_in_the_lines(open_app, way):
    link = {
        "dataset.look": "map",
        "dataset.way": way,
        "dataset.layer": "2",
        "dataset.vector": "first",
        "dataset.row": "3",
        "dataset.file": "pairs.jsonl",
        "dataset.ask": "next",
        "dataset.colour": "is_next",
    }
    app = open_app(page="dataset", **link)
    names, job_result = ran(app), of_job(app, "dataset_vectors")
    assert names["result"].places == job_result.places
    np.testing.assert_allclose(names["vectors"], job_result.vectors[2], atol=1e-4)
    places = (of_job if way == "tsne" else kept)(app, "dataset_places")[0]
    assert names["places"].shape == places.shape
    if way == "pca":  # the others hang on the last bits of the vectors
        np.testing.assert_allclose(names["places"], places, atol=1e-3)
    assert names["known"] == pytest.approx([one.is_next for one in of_job(app, "dataset")], abs=1e-4)
    table = app.dataframe[0].value
    assert [names["numbers"][index] for index, _ in names["near"]] == list(table["row"])
    assert [cosine for _, cosine in names["near"]] == pytest.approx(list(table["cosine"]), abs=1e-4)


def test_an_uploaded_file_is_read_under_its_name(open_app, tmp_path, monkeypatch):
    app = open_app(page="dataset", **{"dataset.file": "upload"})
    app.file_uploader(key="w_dataset_upload").upload("theirs.csv", TEXTS, "text/csv").run()
    (tmp_path / "theirs.csv").write_bytes(TEXTS)
    monkeypatch.chdir(tmp_path)
    same_answers(ran(app)["results"], of_job(app, "dataset"))


def test_typed_lines_end_in_the_lines_of_code_where_the_page_ends_them(open_app):
    text = "The bunny\u2028ate it.\n\nA dog\x0bslept there."
    app = open_app(page="agreement", **{"with": "tiny-uncased", "agreement.file": "typed", "agreement.lines": text})
    actual, job_result = ran(app)["result"], of_job(app, "agreement")
    assert [one.row for one in actual.rows] == [one.row for one in job_result.rows]


def test_typed_lines_are_read_within_the_limits_of_the_page(open_app, monkeypatch, explorer_home, tmp_path):
    limits = (explorer_home / "explorer.toml").read_text() + "[files]\nmax_rows = 2\nmax_row_characters = 20\n"
    (tmp_path / "explorer.toml").write_text(limits)
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "explorer.toml"))
    state.limits.clear()
    text = "A dog slept there.\nThe bunny ate the whole carrot.\nIt was good.\nA cat slept there."
    app = open_app(page="agreement", **{"with": "tiny-uncased", "agreement.file": "typed", "agreement.lines": text})
    actual, job_result = ran(app)["result"], of_job(app, "agreement")
    assert len(job_result.rows) == 2 and [one.row for one in actual.rows] == [one.row for one in job_result.rows]


def same_answers(results, on_page):
    assert [(one.row, one.places) for one in results] == [(one.row, one.places) for one in on_page]
    for one, other in zip(results, on_page):
        assert (one.is_next is None) == (other.is_next is None)
        assert [mask.predictions[0].token for mask in one.masks] == [mask.predictions[0].token for mask in other.masks]


# Learn


@pytest.mark.parametrize(
    "link",
    [{}, {"architecture.open": "feed_forward", "architecture.layer": "2", "architecture.values": "feed_forward_wide"}],
)
def test_the_values_in_the_open_box_are_in_the_lines(open_app, link):
    app = open_app(page="architecture", **PAIR, mask="a2", **link)
    values = ran(app)["values"]
    drawn = array(figures(app)[0]["data"][0]["z"])
    np.testing.assert_allclose(drawn, values[: drawn.shape[0], : drawn.shape[1]], atol=1e-3)


def test_the_open_box_of_every_size_is_in_the_lines(open_app, capsys):
    app = open_app(page="architecture", **PAIR, mask="a2", **{"architecture.open": "feed_forward"})
    ran(app)
    stdout_text = capsys.readouterr().out
    for parameters in app.dataframe[0].value["Parameters"][:-1]:
        assert f"parameters={parameters}," in stdout_text


def test_the_family_s_sizes_are_those_of_the_table(open_app):
    app = open_app(page="architectures")
    on_page = app.dataframe[0].value
    assert [row.parameters["total"] for row in ran(app)["rows"]] == list(on_page["Parameters"])


def test_speed_is_measured_only_where_the_page_does():
    from ui.shell.view import View

    assert "measure_speed(rows)" in pages()["architectures"].snippet(View(), 128, True)
    assert "measure_speed" not in pages()["architectures"].snippet(View(), 128)


# Tasks


@pytest.mark.parametrize("link", [{}, {"windows": "max"}, {"windows": "cut", "words": "1"}])
def test_a_long_text_is_read_as_on_the_page(open_app, trained_in_windows, link):
    text = "the cat sat on the mat in the park and the dog ran to the river bank of the city. " * 20
    app = open_app(page="task_predictions", a=text, **{f"task_predictions.{name}": link[name] for name in link})
    bars = figures(app)[0]["data"][0]
    classes = ran(app)["answer"]["probabilities"]
    np.testing.assert_allclose(array(bars["x"]), [classes[label] for label in bars["y"]], atol=1e-5)


# A task of one's own


def test_the_command_is_what_the_page_would_start(open_app, explorer_home, monkeypatch):
    from bert_tf.cli import argument_parser
    from ui.session import finetuning_jobs

    app = open_app(page="fine_tune")
    app.selectbox(key="w_fine_tune_model").set_value("tiny-cased").run()
    films = b"text,label\n" + b"".join(b"a %d,good\nb %d,bad\n" % (number, number) for number in range(10))
    app.file_uploader(key="w_fine_tune_classify_upload").upload("my films.csv", films, "text/csv").run()
    options = shlex.split(app.code[0].value.replace("\\\n", " "))[3:]
    begun = []
    monkeypatch.setattr(finetuning_jobs, "Training", lambda folder, arguments, seconds, **_: begun.append(arguments))
    folder = explorer_home / finetuning_jobs.start("classify", "my films.csv", films, "tiny-cased", 3, True)
    finetuning_jobs._started().clear()
    shutil.rmtree(folder)
    own = {str(folder): "my-model", str(folder / "task-input.csv"): "my films.csv"}
    assert [own.get(str(one), str(one)) for one in begun[0]] == options
    assert argument_parser(options).parse_args(options).freeze_layers == 1


def test_a_file_whose_name_is_like_an_option_is_a_value_of_the_command():
    from bert_tf.cli import argument_parser
    from ui.shell.view import View

    name = "--reviews; echo $HOME.csv"
    command = pages()["fine_tune"].snippet(View(), "classify", ["--model", "tiny-cased"], name)
    options = shlex.split(command.replace("\\\n", " "))[3:]
    assert argument_parser(options).parse_args(options).train == f"./{name}"
