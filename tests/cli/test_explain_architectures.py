"""`explain` with models that judge no next sentence: classifiers, regressions, the order of two texts, replaced
tokens."""

import json
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf import explain
from bert_tf.cli import main
from bert_tf.results import plain
from tests.conftest import make_bert, randomise

pytestmark = pytest.mark.usefixtures("models_loaded_once")

GOLDEN_FOLDERS = Path(__file__).parent.parent / "golden" / "family"
ALBERT, ELECTRA, DISTILBERT = (GOLDEN_FOLDERS / name for name in ("albert", "electra-discriminator", "distilbert"))
PAIR = ("the license of the work", "the work")
TASKS = {
    "classes": {"task": "classify", "labels": ("bad", "good"), "pooling": "mean"},
    "score": {"task": "classify", "regression": True, "pooling": "mean"},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type

    home, actual = tmp_path_factory.mktemp("tasks"), {"albert": ALBERT, "electra": ELECTRA, "distilbert": DISTILBERT}
    for name, values in TASKS.items():
        settings, bert = TaskSettings(**values), make_bert(seed=3)
        network = network_over(bert.model, task_type(settings.task), settings)
        randomise(network, 3)
        save_task(home / name, bert.config, bert.tokenizer, network, settings)
        actual[name] = home / name
    return actual


@pytest.fixture
def say(folders, capsys):
    def output_of(model, kind, *arguments):
        assert main(["explain", kind, *map(str, arguments), "--model", str(folders[model]), "--quiet"]) == 0
        return capsys.readouterr().out

    return output_of


@pytest.fixture
def record(say):
    return lambda *arguments: json.loads(say(*arguments, "--json"))


def test_a_head_switched_off_changes_a_class(record, say, folders, tmp_path):
    bert = bert_tf.load(folders["classes"])
    expected = explain.ablate(bert, bert.trace("the cat sat"), explain.Ablation(heads=((0, 0),)), attention_shifts=True)
    actual = record("classes", "ablation", "the cat sat", "--heads", "0.0", "--html", tmp_path / "x.html")
    assert actual["classes_before"] == pytest.approx(expected.classes_before, abs=1e-5)
    assert actual["classes_after"] == pytest.approx(expected.classes_after, abs=1e-5)
    before, after, attention_shifts = expected.figure().data
    np.testing.assert_allclose(attention_shifts.z, expected.attention_shifts)
    np.testing.assert_allclose(actual["attention_shifts"], expected.attention_shifts, atol=1e-5)
    assert list(before.x) == ["bad", "good"] and list(after.y) == list(expected.classes_after.values())
    assert (tmp_path / "x.html").stat().st_size > 1000
    lines = say("classes", "ablation", "the cat sat", "--heads", "0.0").splitlines()
    assert [line.split()[2] for line in lines[2:4]] == ["bad", "good"] and "goes elsewhere" in lines[4]


def test_the_value_of_a_regression_is_drawn_as_it_is(record, folders):
    bert = bert_tf.load(folders["score"])
    effect = explain.ablate(bert, bert.trace("the cat sat"), explain.Ablation(layers=(0,)))
    values = [getattr(effect, f"classes_{when}")["value"] for when in ("before", "after")]
    assert [bars.y[0] for bars in effect.figure().data] == values
    assert effect.to_frame()[["answer", "before", "after"]].values.tolist() == [["value", *values]]
    actual = record("score", "ablation", "the cat sat", "--layers", 0)
    assert actual["classes_after"]["value"] == pytest.approx(values[1], abs=1e-5)


@pytest.mark.parametrize(
    "model, texts, name, column",
    [
        ("classes", ("the cat sat",), "class_changes", "class_change"),
        ("albert", PAIR, "sop_changes", "in_order_change"),
    ],
)
def test_a_sweep_ranks_by_the_answer_there_is(record, say, folders, model, texts, name, column):
    bert = bert_tf.load(folders[model])
    swept = explain.sweep(bert, bert.trace(*texts), explain.every_head(bert.config))
    expected = swept.class_changes if model == "classes" else swept.sop_changes
    actual = record(model, "ablation", *texts)
    np.testing.assert_allclose(actual[name], expected, atol=1e-5)
    table = swept.to_frame()
    np.testing.assert_array_equal(table[column], expected[swept.ranked()])
    assert np.abs(table[column]).tolist() == sorted(np.abs(expected), reverse=True)
    assert list(swept.figure().data[0].x) == table[column].tolist()
    assert say(model, "ablation", *texts).splitlines()[2].split()[:4] == table["part"][0].split()


def test_an_input_without_segments_is_taken_apart_in_two(record, say):
    bert = bert_tf.load(DISTILBERT)
    parts = explain.embedding_parts(bert, bert.trace("w1 w2 w3"))
    actual = record("distilbert", "vectors", "w1 w2 w3")
    assert actual["parts"] == ["token", "position"]
    np.testing.assert_allclose(actual["shares"], parts.shares, atol=1e-4)
    np.testing.assert_allclose(actual["norms"], parts.norms, atol=1e-4)
    lines = say("distilbert", "vectors", "w1 w2 w3")
    assert "position_share" in lines and "segment" not in lines


def test_the_order_of_sentences_before_and_after(record):
    bert = bert_tf.load(ALBERT)
    effect = explain.ablate(bert, bert.trace(*PAIR), explain.Ablation(layers=(0,)))
    shares = [effect.sop_before.in_order, effect.sop_after.in_order]
    assert [bars.y[0] for bars in effect.figure().data] == shares
    actual = record("albert", "ablation", *PAIR, "--layers", 0)
    assert [actual[f"sop_{when}"]["in_order"] for when in ("before", "after")] == pytest.approx(shares, abs=1e-5)


def test_counterfactuals_of_the_order_of_sentences(record, say):
    actual = record("albert", "counterfactual", *PAIR)
    bert = bert_tf.load(ALBERT)
    trace = bert.trace(*PAIR)
    (swapped,) = explain.predict_variants(bert, trace, [explain.swapped(bert, trace)])
    assert actual["variants"][0]["sop"]["in_order"] == pytest.approx(swapped.sop.in_order, abs=1e-5)
    assert actual["variants"][0]["sop_change"] == pytest.approx(swapped.sop_change, abs=1e-5)
    result = explain.counterfactuals(bert, trace)
    (bars,) = (figure := result.figure()).data
    assert list(bars.x) == [one.sop_change for one in result.variants] == result.to_frame()["in_order_change"].tolist()
    assert any(bars.x) and "in order" in figure.layout.xaxis.title.text
    lines = say("albert", "counterfactual", *PAIR).splitlines()
    assert lines[1].endswith("in_order_change") and not lines[2].endswith("-")


def test_a_class_hangs_on_words_and_appears_in_a_layer(record, folders):
    bert = bert_tf.load(folders["classes"])
    trace = bert.trace("the cat sat")
    for label in ("bad", "good", None):
        expected = explain.gradient_x_input(bert, trace, explain.class_target(bert, trace, label))
        options = () if label is None else ("--label", label)
        actual = record("classes", "saliency", "the cat sat", "--method", "gradient", *options)
        assert actual["target"] == plain(expected.target)
        np.testing.assert_allclose(actual["scores"], expected.scores, atol=1e-4)
    actual = record("classes", "lens", "the cat sat")
    lens = explain.class_lens(bert, trace)
    np.testing.assert_allclose(actual["values"], lens.values, atol=1e-5)
    assert [curve.name for curve in lens.figure().data] == actual["labels"] == ["bad", "good"]
    corrupted, target = bert.trace("the dog sat"), explain.class_target(bert, trace, "good")
    actual = record("classes", "patching", "the cat sat", "--against", "the dog sat", "--label", "good")
    np.testing.assert_allclose(actual["scores"], explain.patch_states(bert, trace, corrupted, target).scores, atol=1e-4)


def test_the_head_of_a_task_is_a_part(record, folders):
    from bert_tf.explain.models.architecture import task_head_activations

    bert = bert_tf.load(folders["classes"])
    actual = record("classes", "architecture", "the cat sat")
    assert actual["parts"][-1]["name"] == "task" and actual["parts"][-1]["shape"] == {"classes": 2}
    expected = task_head_activations(bert, bert.trace("the cat sat"))
    np.testing.assert_allclose(actual["task_outputs"]["logits"], expected["logits"], atol=1e-4)


def test_the_order_of_sentences_hangs_on_words(record):
    bert = bert_tf.load(ALBERT)
    trace = bert.trace(*PAIR)
    for opposite in (False, True):
        expected = explain.occlusion(bert, trace, explain.sentence_order_target(bert, trace, not opposite))
        options = ("--sentence-order", *(["--opposite"] if opposite else []))
        actual = record("albert", "saliency", *PAIR, "--method", "occlusion", *options)
        assert actual["target"]["label"] == ("swapped" if opposite else "in order")
        np.testing.assert_allclose(actual["scores"], expected.scores, atol=1e-4)


def test_a_token_s_being_replaced_hangs_on_words_states_and_parts(record, say):
    text, bert = "w1 w2 w3 w4", bert_tf.load(ELECTRA)
    trace = bert.trace(text)
    for options, target in (
        (("--replaced",), explain.replaced_target(bert, trace)),
        (("--replaced", "--position", 2, "--opposite"), explain.replaced_target(bert, trace, 2, False)),
    ):
        expected = explain.occlusion(bert, trace, target)
        actual = record("electra", "saliency", text, "--method", "occlusion", *options)
        assert actual["target"] == plain(target)
        np.testing.assert_allclose(actual["scores"], expected.scores, atol=1e-4)
        expected = explain.patch_states(bert, trace, bert.trace("w1 w9 w3 w4"), target)
        actual = record("electra", "patching", text, "--against", "w1 w9 w3 w4", *options)
        np.testing.assert_allclose(actual["scores"], expected.scores, atol=1e-4)
    actual = record("electra", "ablation", text, "--layers", 1)
    effect = explain.ablate(bert, trace, explain.Ablation(layers=(1,)))
    np.testing.assert_allclose(actual["replaced_after"], effect.replaced_after, atol=1e-5)
    drawn = [list(bars.y) for bars in effect.figure().data]
    assert drawn == [effect.replaced_before.tolist(), effect.replaced_after.tolist()]
    actual = record("electra", "ablation", text)
    swept = explain.sweep(bert, trace, explain.every_head(bert.config))
    np.testing.assert_allclose(actual["replaced_changes"], swept.replaced_changes, atol=1e-5)
    values = np.abs(swept.replaced_changes).mean(axis=1)[swept.ranked()]
    assert list(swept.figure().data[0].x) == values.tolist() == swept.to_frame()["replaced_change"].tolist()
    assert "replaced_change" in say("electra", "ablation", text).splitlines()[1]


def test_the_head_of_a_task_and_shared_weights_are_parts_of_the_architecture(record):
    actual = record("classes", "architecture", "the cat sat")
    head = actual["parts"][-1]
    assert (head["name"], head["shape"], head["parameters"]) == ("task", {"classes": 2}, 2 * 32 + 2)
    attention = record("albert", "architecture", *PAIR)["parts"][1]
    assert (attention["repeats"], attention["sets"]) == (4, 2)


def test_attention_to_tokens_is_cut_and_the_other_heads_shift(record, say, folders):
    bert, text = bert_tf.load(folders["classes"]), "the cat sat on the mat"
    expected = explain.ablate(bert, bert.trace(text), explain.Ablation(tokens=(0, 2)), attention_shifts=True)
    actual = record("classes", "ablation", text, "--tokens", 0, 2)
    assert actual["ablation"]["tokens"] == [0, 2]
    np.testing.assert_allclose(actual["attention_shifts"], expected.attention_shifts, atol=1e-5)
    assert actual["classes_after"] == pytest.approx(expected.classes_after, abs=1e-5)
    layer, head = np.unravel_index(expected.attention_shifts.argmax(), expected.attention_shifts.shape)
    lines = say("classes", "ablation", text, "--tokens", 0, 2).splitlines()
    first = next(line for line in lines if "goes elsewhere" in line)
    assert first.startswith(f"layer {layer}, head {head}: ")


@pytest.mark.parametrize(
    "model, arguments, sentence",
    [
        ("albert", ("saliency", *PAIR, "--label", "good"), "not fine-tuned to classify"),
        ("classes", ("saliency", "the cat", "--label", "great"), "There is no class 'great'"),
        ("classes", ("saliency", "the cat", "--label", "good", "--target", "cat"), "only one of"),
        ("classes", ("saliency", "the cat", "--opposite"), "--opposite goes with"),
        ("electra", ("saliency", "w1 w2", "--replaced", "--position", "9"), "no token 9"),
        ("electra", ("saliency", "w1 w2", "--replaced", "--target", "w3"), "only one of"),
        ("albert", ("saliency", "the work", "--replaced"), "replaced-token head"),
        ("classes", ("patching", "the cat", "--against", "the dog", "--sentence-order"), "sentence-order head"),
        ("classes", ("ablation", "the cat", "--tokens", "9"), "no token 9"),
    ],
)
def test_each_mistake_is_told_in_one_line(capsys, folders, model, arguments, sentence):
    assert main(["explain", *arguments, "--model", str(folders[model])]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and sentence in lines[0], lines
