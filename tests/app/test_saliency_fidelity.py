"""What the page Saliency says about how its methods fared."""

import runpy

import pytest

from pages.explain import saliency_fidelity
from pages.explain.saliency import _METHODS
from tests.app.page_reading import page_text, param, run_until_done
from ui.shell.limits import ROOT


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "benchmarks" / "saliency_fidelity.py"))


@pytest.fixture(scope="module")
def record():
    return saliency_fidelity._record()


def test_the_record_is_of_the_script_s_sentences_and_methods(script, record):
    assert record["sentences"] == len(script["SENTENCES"]) and record["words"] == script["WORDS"]
    measured = [(row["method"], row["baseline"]) for row in record["methods"]]
    assert sorted(measured, key=str) == sorted(script["VARIANTS"], key=str)
    losses = [row["loss"] for row in record["methods"]]
    assert losses == sorted(losses, reverse=True)
    chance = record["random"]
    assert chance["least"] <= chance["mean"] <= chance["greatest"]


def test_the_script_hides_the_best_words_first(script, tiny_bert):
    import numpy as np

    from bert_tf.explain import mask_target
    from bert_tf.explain.attribution.saliency import replaceable_word_positions

    trace = tiny_bert.trace("the cat sat on the mat", mask=("cat",))
    target = mask_target(tiny_bert, trace)
    order = replaceable_word_positions(trace)[:2]

    def likely(*hidden):
        masked = tiny_bert.trace("the cat sat on the mat", mask=hidden)
        logits = masked.logits[masked.masks.index(target.position)].astype(float)
        return logits[target.id] - np.logaddexp.reduce(logits)

    losses = [likely("cat") - likely("the", "cat"), likely("cat") - likely("the", "cat", "sat")]
    assert script["loss"](tiny_bert, trace, target, order) == pytest.approx(np.mean(losses), abs=1e-4)


def test_integrated_gradients_open_with_the_best_baseline_and_enough_steps(open_app, record):
    app = run_until_done(open_app(page="saliency", a="the cat sat", mask="a1"))
    rows = [row for row in record["methods"] if row["method"] == "integrated-gradients"]
    best = max(rows, key=lambda row: row["loss"])
    assert app.button_group(key="w_saliency.from").value == best["baseline"] and param(app, "saliency.from") is None
    assert app.button_group(key="w_saliency_steps").value == 0 and "most_gap=0.02" in app.code[0].value
    assert f"cost the prediction {best['loss']:.1f} nats on average" in page_text(app)
    assert f"a random order {record['random']['mean']:.1f}" in page_text(app)


@pytest.mark.parametrize("method", ["deeplift", "occlusion", "lime"])
def test_every_method_opens_with_its_best_baseline(open_app, record, method):
    app = open_app(page="saliency", a="the cat sat", mask="a1", **{"saliency.method": method})
    best = max((row for row in record["methods"] if row["method"] == method), key=lambda row: row["loss"])
    name = "from" if method == "deeplift" else "instead"
    assert app.button_group(key=f"w_saliency.{name}").value == best["baseline"]


def test_every_method_that_scores_words_says_how_it_fared(record):
    for method in _METHODS:
        if method in ("input-reduction", "hotflip"):
            continue
        output = saliency_fidelity.sentence(method, saliency_fidelity.best_baseline(method), _METHODS)
        loss = next(row["loss"] for row in record["methods"] if row["method"] == method)
        assert f"cost the prediction {loss:.1f} nats" in output
    assert not saliency_fidelity.sentence("deeplift", ("a text",), _METHODS)
