"""What a fine-tuned class hangs on."""

import numpy as np
import pytest

from bert_tf.config import BertConfig
from bert_tf.errors import InputError
from bert_tf.explain import (
    Ablation,
    Saliency,
    Target,
    WordScore,
    ablate,
    class_lens,
    class_target,
    every_head,
    gradient_x_input,
    hotflip,
    integrated_gradients,
    lime,
    occlusion,
    reduce_input,
    sweep,
)
from bert_tf.finetuning.task_model import TaskModel
from bert_tf.finetuning.task_network import network_over
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.inference.bert import Bert
from bert_tf.inference.words import WordSpan
from bert_tf.models import build_pretraining_model
from bert_tf.runtime import Runtime
from bert_tf.tokenizers import Tokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film", "was", "it"]


def made(words=WORDS, **settings):
    """A random classifier; `settings` of its task."""
    import keras

    keras.utils.set_random_seed(3)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        initializer_range=0.3,
    )
    tokenizer, model = Tokenizer(words, lower_case=words is WORDS), build_pretraining_model(config)
    settings = TaskSettings("classify", **{"labels": ("bad", "good", "so"), **settings})
    runtime = Runtime(model)
    task = TaskModel(settings, network_over(model, task_type("classify"), settings), tokenizer, runtime)
    return Bert(config, tokenizer, model, runtime, "made", task=task)


@pytest.mark.parametrize("pooling", ["cls", "mean", "attention", "max"])
def test_the_score_is_the_log_probability_that_the_task_gives(pooling):
    bert = made(pooling=pooling)
    trace = bert.trace("it was a good film")
    (output,) = bert.task.predict(["it was a good film"])
    actual = occlusion(bert, trace, class_target(bert, trace))
    assert actual.target.label == output["label"]
    assert actual.log_probability == pytest.approx(np.log(output["probability"]), abs=1e-5)


def test_several_labels_and_a_number_are_scored_in_their_own_ways():
    bert = made(multi_label=True)
    (output,) = bert.task.predict(["it was bad"])
    trace = bert.trace("it was bad")
    actual = occlusion(bert, trace, class_target(bert, trace, "so"))
    assert actual.log_probability == pytest.approx(np.log(output["probabilities"]["so"]), abs=1e-5)

    bert = made(labels=(), regression=True)
    (output,) = bert.task.predict(["it was bad"])
    trace = bert.trace("it was bad")
    assert occlusion(bert, trace, class_target(bert, trace)).log_probability == pytest.approx(output["value"], abs=1e-5)


def test_integrated_gradients_of_a_class_add_up():
    bert = made()
    trace = bert.trace("it was a good film")
    actual = integrated_gradients(bert, trace, class_target(bert, trace, "good"), steps=64)
    assert abs(actual.convergence_delta) < 0.02
    assert np.isfinite(gradient_x_input(bert, trace, actual.target).scores).all()


def test_parts_are_switched_off_under_a_class():
    bert = made()
    trace = bert.trace("it was a good film")
    (output,) = bert.task.predict(["it was a good film"])
    effect = ablate(bert, trace, Ablation(heads=((0, 1),)))
    assert effect.classes_before == pytest.approx(output["probabilities"], abs=1e-5)
    assert sum(effect.classes_after.values()) == pytest.approx(1) and effect.before == ()
    actual = sweep(bert, trace, every_head(bert.config))
    gained = np.log(effect.classes_after[output["label"]] / effect.classes_before[output["label"]])
    assert actual.class_changes[1] == pytest.approx(gained, abs=1e-4) and abs(gained) > 1e-3
    assert (np.diff(np.abs(actual.class_changes)[actual.ranked()]) <= 0).all()


def test_a_switched_off_layer_is_a_classifier_without_it():
    bert = made()
    trace = bert.trace("it was a good film")
    effect = ablate(bert, trace, Ablation(layers=(1,)))
    # What the last layer would have been given goes to the head as it is.
    assert list(effect.classes_after.values()) == pytest.approx(class_lens(bert, trace).values[1], abs=1e-5)


def test_every_layer_is_read_by_the_head_of_the_classes():
    for settings in ({}, {"multi_label": True}, {"labels": (), "regression": True}):
        bert = made(**settings)
        trace = bert.trace("it was a good film")
        (output,) = bert.task.predict(["it was a good film"])
        lens = class_lens(bert, trace)
        assert lens.values.shape == (3, len(lens.labels))
        wanted = output.get("probabilities", {"value": output.get("value")})
        assert dict(zip(lens.labels, lens.values[-1])) == pytest.approx(wanted, abs=1e-5)
        assert not np.allclose(lens.values[0], lens.values[-1])
    with pytest.raises(InputError, match="no hidden states"):
        class_lens(bert, bert.trace("it was bad", hidden_states=False))


def test_models_without_the_class_say_so():
    bert = made()
    trace = bert.trace("it was bad")
    with pytest.raises(InputError, match="no class 'great'; this model has bad, good, so"):
        class_target(bert, trace, "great")
    plain = Bert(bert.config, bert.tokenizer, bert.model, name="plain")
    for predict_variants in (class_target, class_lens):
        with pytest.raises(InputError, match="plain was not fine-tuned"):
            predict_variants(plain, trace)


def test_words_are_taken_away_while_the_class_stays():
    bert = made(pooling="mean")
    trace = bert.trace("it was a good film")
    actual = reduce_input(bert, trace, class_target(bert, trace))
    assert actual.target_is_top and len(actual.remaining) + len(actual.removed) == 5 and actual.remaining
    away = []
    for one in actual.removed:
        away.append(one.word)
        (output,) = bert.task.predict([" ".join(word.text for word in trace.words() if word not in away)])
        assert output["label"] == actual.target.label
        assert one.log_probability == pytest.approx(np.log(output["probability"]), abs=1e-5)
    bert = made(labels=(), regression=True)
    trace = bert.trace("it was bad")
    with pytest.raises(InputError, match="Input reduction needs a target among several outcomes"):
        reduce_input(bert, trace, class_target(bert, trace))


def test_a_class_is_flipped_by_other_words_and_explained_by_a_linear_model():
    bert = made(pooling="mean")
    trace = bert.trace("it was a good film")
    actual = hotflip(bert, trace, class_target(bert, trace), most=5, tried=5)
    assert actual.target_is_top and actual.applied
    for one in actual.applied:
        (output,) = bert.task.predict([one.text_a])
        assert one.answer.label == output["label"] and one.flips_prediction == (output["label"] != actual.target.label)
        assert one.answer_log_probability == pytest.approx(np.log(output["probability"]), abs=1e-5)
    explained = lime(bert, trace, actual.target, samples=400, baseline="[PAD]", ridge=1e-6)
    assert 0 < explained.weighted_r2 <= 1 and any(one.score for one in explained.words)
    bert = made(labels=(), regression=True)
    trace = bert.trace("it was bad")
    with pytest.raises(InputError, match="HotFlip needs a target among several outcomes"):
        hotflip(bert, trace, class_target(bert, trace))
    assert lime(bert, trace, class_target(bert, trace)).weighted_r2 > 0


def test_of_several_labels_each_stands_on_its_own():
    bert = made(pooling="mean", multi_label=True)
    texts = ["it was a good film", "it was bad", "a bad film was good", "good good it"]
    checked = set()
    for text in texts:
        trace, (output,) = bert.trace(text), bert.task.predict([text])
        for label, share in output["probabilities"].items():
            target = class_target(bert, trace, label)
            actual, left = hotflip(bert, trace, target, most=5, tried=5), reduce_input(bert, trace, target)
            assert actual.target_is_top == left.target_is_top == (share > 0.5)
            checked.add((actual.target_is_top, label == max(output["probabilities"], key=output["probabilities"].get)))
            for one in actual.tried + actual.applied:
                now = bert.task.predict([one.text_a])[0]["probabilities"][label]
                assert one.flips_prediction == (now <= 0.5) and one.answer.label == (
                    f"not {label}" if one.flips_prediction else label
                )
                assert one.answer_log_probability == pytest.approx(np.log(max(now, 1 - now)), abs=1e-5)
            away = []
            for one in left.removed:
                away.append(one.word)
                rest = " ".join(word.text for word in trace.words() if word not in away)
                assert bert.task.predict([rest])[0]["probabilities"][label] > 0.5
            if left.target_is_top and len(left.remaining) > 1:
                for word in left.remaining:
                    rest = " ".join(other.text for other in left.remaining if other != word)
                    assert bert.task.predict([rest])[0]["probabilities"][label] <= 0.5
    # Among them labels that stand though another is likelier.
    assert {(True, False), (True, True)} <= checked


def test_words_with_vowel_signs_are_changed_for_each_other():
    words = [*WORDS[:5], "हिन्दी", "अच्छी", "நல்ல", "है", "##ी", "।"]
    bert = made(words, pooling="mean")
    trace = bert.trace("हिन्दी अच्छी है ।")
    assert [one.text for one in trace.words()][:3] == ["हिन्दी", "अच्छी", "है"]
    actual = hotflip(bert, trace, class_target(bert, trace), tried=5)
    assert {one.word.text for one in actual.tried} == {"हिन्दी", "अच्छी", "है"}
    assert {one.new for one in actual.tried} == {"हिन्दी", "अच्छी", "நல்ல", "है"}


def test_a_class_called_value_is_no_regression():
    bert = made(labels=("value", "price", "so"))
    trace = bert.trace("it was a good film")
    target = class_target(bert, trace, "value")
    assert not target.is_regression and reduce_input(bert, trace, target).target == target
    bert = made(labels=(), regression=True)
    assert class_target(bert, bert.trace("it was bad")).is_regression


@pytest.mark.parametrize("is_regression, says", [(False, "log-probability of value"), (True, "value")])
def test_the_figure_of_its_words_says_what_their_scores_are_of(is_regression, says):
    target = Target(None, 0, "value", True, is_regression=is_regression)
    words = (WordScore(WordSpan("a", 0, "good", (1,), 0, 4), 0.5),)
    figure = Saliency("gradient-x-input", target, -0.1, (), np.zeros(0), words).figure()
    assert figure.layout.xaxis.title.text.startswith(says)


def test_what_is_explained_is_what_the_classifier_reads():
    bert = made(max_length=8, pooling="mean")
    text = "good film it was good film bad bad bad a bad film it was bad bad bad"
    (output,) = bert.task.predict([text])
    trace = bert.trace(text)
    assert bert.max_length == trace.length == 8 and trace.truncated == (11, 0)
    assert output["truncated"] == {"tokens_a": 11, "tokens_b": 0}
    (whole,) = bert.task.with_windows("mean").predict([text])
    assert "truncated" not in whole and "truncated" not in bert.task.predict(["good"])[0]
    assert class_target(bert, trace).label == output["label"]
    expected = [output["probabilities"][label] for label in bert.task.settings.labels]
    np.testing.assert_allclose(class_lens(bert, trace).values[-1], expected, atol=1e-6)
    assert len(integrated_gradients(bert, trace, class_target(bert, trace), steps=2).scores) == 8


def test_a_classifier_explains_the_texts_that_it_was_trained_on():
    single, pair = made(pair=False), made(pair=True)
    one, two = "a good film", ("a good film", "it was bad")
    for question in (class_lens, class_target):
        with pytest.raises(InputError, match="made classifies single texts, and there is a second one, 'it was bad'"):
            question(single, single.trace(*two))
        with pytest.raises(InputError, match="made classifies pairs of texts: give a second text"):
            question(pair, pair.trace(one))
        question(single, single.trace(one)), question(pair, pair.trace(*two))
    off = Ablation(heads=((0, 0),))
    assert ablate(single, single.trace(*two), off).classes_after is None
    assert ablate(single, single.trace(one), off).classes_after is not None
