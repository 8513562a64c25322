"""Walk through: what the page gives to its component, for long texts and for every kind of head."""

import base64
from types import SimpleNamespace

import numpy as np
import pytest

import bert_tf
from bert_tf.config import BertConfig
from bert_tf.explain.models.walk_through import ENCODER_STEPS
from bert_tf.runtime.numpy_ops import ACTIVATIONS
from pages.learn import walk_steps
from tests.app.family_models import DEBERTA_TEXT, MODERN_TEXT
from tests.app.page_reading import component, page_text, param, run_until_done
from tests.app.random_task_models import TASKS

LONG = "The bunny ate a carrot today . " * 90


def walked(open_app, **link):
    app = run_until_done(open_app(page="walk_through", **link))
    return app, component(app, "walk")


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def test_code_and_data_of_a_walk_are_small(open_app):
    import json

    from ui.shell.limits import ROOT

    code = [ROOT / "assets" / "components" / name for name in ("walk.html", "walk.css", "walk.js", "shared.js")]
    size = sum(path.stat().st_size for path in code)
    _, data = walked(open_app, a="The people of the city walked along the river. " * 3, b="They stayed.", mask="a3")
    assert data["layers"] >= 2 and data["total"] > len(data["tokens"]) >= 24  # as many as are drawn at once
    assert size + len(json.dumps(data)) < 300_000


@pytest.mark.parametrize("name", TASKS)
def test_the_last_step_of_a_fine_tuned_model_is_its_own_head(open_app, with_tasks, task_home, name):
    texts = {"a": "the cat sat", "b": "it ran to London" if TASKS[name].get("pair") else ""}
    app, data = walked(open_app, model=name, **texts)
    if TASKS[name]["task"] == "similarity":  # it compares hidden states, without a head
        assert "task" not in data["steps"]
        return
    assert data["steps"][-1] == "task", page_text(app)
    bert = bert_tf.load(task_home / name)
    text = data["texts"][-1]
    assert text["page"] == "task_predictions" and text["formula"]
    kind, head = TASKS[name]["task"], data["task"]
    assert head["kind"] == kind
    trace = bert.trace(texts["a"], texts["b"] or None, hidden_states=True)
    if kind == "answer":
        outputs = bert.task.head_outputs(trace.hidden_states[-1][None])
        for end, logits in zip(head["ends"], (outputs["start_logits"][0], outputs["end_logits"][0]), strict=True):
            best = end["tokens"][0]
            assert best["position"] == logits.argmax() and best["token"] == trace.tokens[logits.argmax()]
            wanted = np.exp(logits - logits.max())
            assert best["share"] == pytest.approx((wanted / wanted.sum()).max(), abs=1e-4)
    elif kind == "tag":
        values = np.array(head["values"])
        assert values.shape == (trace.length, len(TASKS[name]["labels"]))
        np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-3)
    elif kind == "classify" and not TASKS[name].get("regression"):
        assert head["labels"] == list(TASKS[name]["labels"])
        assert sum(head["values"]) == pytest.approx(1, abs=1e-4)
    else:
        assert len(head["values"]) == 1 and not head["is_probability"]


def test_the_answer_of_a_long_text_is_found_outside_of_the_drawn_tokens(open_app, with_tasks, task_home):
    texts = {"a": "where was it", "b": "it was in the bank . " * 8}
    _, data = walked(open_app, model="answers", **texts)
    assert len(data["tokens"]) == 24 < data["total"]
    positions = [one["position"] for end in data["task"]["ends"] for one in end["tokens"]]
    assert len(positions) == 10 and max(positions) < data["total"]


def test_512_tokens_are_drawn_a_part_at_a_time(open_app):
    app, data = walked(open_app, a=LONG, **{"walk_through.token": "400"})
    assert data["total"] == 512 and len(data["tokens"]) == 24
    assert data["first"] <= data["token"] == 400 < data["first"] + 24
    assert len(app.get("warning")) + len(app.caption) > 0  # the text is cut: it is said
    weights = floats(data["weights"]).reshape(24, 24)
    np.testing.assert_allclose(weights.sum(axis=1) + data["rest"], 1, atol=1e-3)


def test_a_token_that_the_text_does_not_have_is_not_followed(open_app):
    for token in ("-1", "99", "none"):
        app, data = walked(open_app, a="The bunny ate it.", **{"walk_through.token": token})
        assert data["token"] == 1 and not app.exception


def test_the_step_of_a_link_opens_and_one_that_the_model_lacks_does_not(open_app):
    assert walked(open_app, a="The bunny.", **{"walk_through.step": "mlm"})[1]["step"] == "mlm"
    app, data = walked(open_app, a="The bunny.", **{"walk_through.step": "task"})
    assert data["step"] == "pieces" and param(app, "page") == "walk_through"


HEADS = {
    "roberta": ["mlm"],
    "distilbert": ["mlm"],
    "albert": ["sop", "mlm"],
    "electra-discriminator": ["replaced"],
    "electra-generator": ["mlm"],
    "reader-left-to-right": ["mlm"],
    "reader-two-one-way": ["mlm"],
}


@pytest.mark.parametrize("name", HEADS)
def test_every_architecture_is_walked_through_by_what_it_declares(open_app, family_home, name):
    text = "w1 w2 w3 w4" if name in ("distilbert", *(one for one in HEADS if "electra" in one)) else "the work"
    app, data = walked(open_app, model=name, a=text, b=text)
    assert data["steps"][7:] == HEADS[name]
    output = {text["name"]: text["text"] for text in data["texts"]}
    kinds = {"roberta": "one that all tokens share", "distilbert": "two vectors"}
    assert kinds.get(name, "vectors: ") in output["embeddings"]
    one_way = name.startswith("reader")
    assert ("every token" in output["head"]) == (not one_way)
    assert np.isnan(floats(data["scores"])).any() == one_way
    assert ("of weights for all" in output["layers"]) == (name == "albert")


def test_a_pre_norm_model_is_walked_through_with_its_copies_gates_and_turned_queries(open_app, modernbert_home):
    link = {"model": "modernbert", "a": MODERN_TEXT}
    app, data = walked(open_app, **link, layer="2")
    assert not app.exception and not app.error, page_text(app)
    assert data["steps"][7:] == ["mlm"] and data["parts"] == ["token"]
    message = {text["name"]: text["text"] for text in data["texts"]}
    formulas = {text["name"]: " ".join(text["formula"]) for text in data["texts"]}
    assert "turn their queries and keys" in message["embeddings"] and "turned by their positions" in message["head"]
    assert "A copy of the sum" in message["attention_norm"] and "a gate scales each" in message["feed_forward"]
    assert "+ b" not in " ".join(formulas[step] for step in ENCODER_STEPS) and "β" not in formulas["attention_norm"]
    assert "+ b" not in formulas["mlm"].replace("+ b′", "")  # the output bias is the only one
    assert formulas["head"].startswith("x = LayerNorm(h)") and "turn(x · W_Q)" in formulas["head"]
    assert data["norm_first"] and data["gated"]
    for layer, is_last in ((1, False), (data["layers"], True)):
        _, data = walked(open_app, **link, layer=str(layer))
        (output,) = (text["formula"][-1] for text in data["texts"] if text["name"] == "feed_forward")
        assert data["normalised_output"] == ("LayerNorm" in output) == is_last


def test_relative_positions_are_said_and_the_first_token_joins_the_replaced_head(open_app, deberta_home):
    app, data = walked(open_app, model="deberta", a=DEBERTA_TEXT)
    assert not app.exception and not app.error, page_text(app)
    texts = {text["name"]: text for text in data["texts"]}
    assert "distances between tokens" in texts["embeddings"]["text"]
    assert "K_rᵀ" in " ".join(texts["head"]["formula"]) and texts["head"]["page"] == "all_heads"
    if "replaced" in texts:
        assert f"that of {data['tokens'][0]} is added" in texts["replaced"]["text"]


def test_the_lines_have_the_numbers_of_the_page(open_app):
    app, data = walked(open_app, a="The bunny ate it.", layer="2", head="3")
    names = {}
    exec(app.code[0].value, names)
    assert list(names["walk"].steps) == data["steps"]
    shape = (data["total"], data["total"])
    np.testing.assert_allclose(floats(data["weights"]).reshape(shape), names["walk"].weights[2], atol=1e-5)


def said(step, **settings):
    """The sentence and the formula of a step of a walk through a model with these settings."""
    config = BertConfig(vocab_size=40, **settings)
    written = walk_steps._WRITERS[step](SimpleNamespace(config=config, layer=0, tokens=("[CLS]",)), None)
    return written["text"], " ".join(written["formula"])


def test_every_activation_has_its_name():
    assert walk_steps.ACTIVATIONS.keys() == ACTIVATIONS.keys()
    for name, title in walk_steps.ACTIVATIONS.items():
        text, formula = said("feed_forward", hidden_act=name)
        assert f"the {title} " in text and f"{title}(x · W₁ + b)" in formula
        assert ("mutes those below zero" in text) == (name != "tanh")


def test_the_head_for_words_is_said_to_have_its_own_activation_and_table():
    assert "GELU(h · W + b)" in said("mlm", model_type="roberta", hidden_act="relu")[1]
    assert "ReLU(h · W + b)" in said("mlm", hidden_act="relu")[1]
    text, formula = said("mlm")
    assert "all 40 tokens in the table." in text and "softmax(t · Eᵀ + b′), E the table of token vectors" in formula
    text, formula = said("mlm", tie_word_embeddings=False)
    assert "all 40 tokens in a table of the head's own." in text and "softmax(t · Uᵀ + b′), U the head's" in formula
