"""Slopes against the answer moved along the vectors, vectors against classifiers fitted to whole states."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bert_tf.errors import Cancelled, InputError, MissingHead
from bert_tf.explain import can_test, concept_test, row_vectors
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.explain.representations import tcav as module
from tests.explain.test_class_target import made
from tests.layers.test_causal import APART, LEFT, make_reader

CAT = [f"the cat {verb} {place}" for verb in ("sat", "ran", "is", "was") for place in ("on the mat", "in the park")]
DOG = [
    f"{who} {verb} {place}"
    for who in ("a dog", "the bunny", "she", "he")
    for verb in ("sat", "ran", "is", "was")
    for place in ("on the mat", "in the park")
]
ROWS = (
    TextRow(1, "the [MASK] sat on the mat", "it ran"),
    TextRow(2, "\u200b"),
    TextRow(3, "she ate a [MASK]", "he was big and small"),
    TextRow(4, "it was in London"),
    TextRow(5, "the law of the [MASK]", "it is so"),
)


def log_odds(bert, states, target):
    """Float64 [B], from last states, by the head's answers."""
    share = np.exp(bert.hooked().answers(states, target).astype(np.float64))[:, target.id]
    return np.log(share) - np.log1p(-share)


@pytest.mark.parametrize("of, answer", [("word", "dog"), ("next", "NotNext")])
def test_a_slope_is_what_a_step_of_every_token_does(tiny_bert, monkeypatch, of, answer):
    kept = {}
    monkeypatch.setattr(module, "_classifiers", lambda *arguments: kept.setdefault(len(kept), fixed(*arguments)))
    actual = concept_test(tiny_bert, ROWS, CAT, DOG, of, answer, runs=2)
    wanted = (0, 2, 4)
    assert actual.places == wanted and actual.slopes.shape == (3, 3) and actual.target.label == answer
    for index, place in enumerate(wanted):
        trace = tiny_bert.trace(ROWS[place].text_a, ROWS[place].text_b)
        target = module.dataclasses.replace(actual.target, position=trace.masks[0] if of == "word" else None)
        states = tiny_bert.hooked().states(trace.token_ids[None], trace.segments[None])
        for layer, state in enumerate(states):
            vector = kept[layer][0][0].mean(axis=0).astype(np.float32)
            step = 1e-3 * vector  # of each token
            moved = [tiny_bert.hooked().finish(state + sign * step, layer) for sign in (1, -1)]
            ends = [log_odds(tiny_bert, one, target) for one in moved]
            assert actual.slopes[layer, index] == pytest.approx((ends[0] - ends[1])[0] / 2e-3, rel=0.03, abs=3e-3)


def fixed(states, own, rest, size, runs):
    """Vectors at random in the place of classifiers, and accuracies."""
    rng = np.random.default_rng(len(states))
    vectors = rng.normal(size=(2, runs, states.shape[1]))
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), rng.uniform(size=(2, runs))


def test_vectors_are_those_of_classifiers_fitted_to_whole_states(tiny_bert):
    vectors = (
        row_vectors(tiny_bert, [TextRow(n, text) for n, text in enumerate(CAT + DOG)]).vectors[1].astype(np.float64)
    )
    own, rest, size, held = list(range(8)), list(range(8, 40)), 8, 3
    actual, accuracies = module._classifiers(vectors, own, rest, size, 3)
    spread, rng = np.sqrt(((vectors - vectors.mean(axis=0)) ** 2).mean()), np.random.default_rng(0)
    for run in range(3):
        drawn, mixed = rng.permutation(rest), rng.permutation(rest)
        for kind, (yes, no) in enumerate(((rng.permutation(own), drawn[:8]), (mixed[:8], mixed[8:16]))):
            model = LogisticRegression(max_iter=5000, tol=1e-8)
            model.fit(vectors[[*yes[held:], *no[held:]]] / spread, [1] * 5 + [0] * 5)
            wanted = model.coef_[0] / np.linalg.norm(model.coef_)
            assert actual[kind, run] @ wanted > 0.999
            assert accuracies[kind, run] == model.score(vectors[[*yes[:3], *no[:3]]] / spread, [1] * 3 + [0] * 3)


def test_scores_and_what_differs_from_chance(tiny_bert):
    actual = concept_test(tiny_bert, ROWS, CAT, DOG, "word", "dog", runs=20)
    assert actual.scores.shape == (3, 20) and actual.sentences == 8
    assert set(np.round(3 * np.r_[actual.scores.ravel(), actual.random_scores.ravel()], 9)) <= {0, 1, 2, 3}
    for layer in range(3):
        far = [abs(one - 0.5) >= abs(actual.scores[layer].mean() - 0.5) - 1e-9 for one in actual.random_scores[layer]]
        good = [one >= actual.accuracies[layer].mean() - 1e-9 for one in actual.random_accuracies[layer]]
        assert actual.p_values[layer] == (1 + sum(far)) / 21 and actual.accuracy_p_values[layer] == (1 + sum(good)) / 21
        assert actual.is_decodable[layer] == (not any(good))
        assert actual.is_significant[layer] == (not any(good) and not any(far))
    assert actual.is_decodable[1:].all()  # every sentence of the concept has its word
    again = concept_test(tiny_bert, iter(ROWS), CAT, DOG, "word", "dog", runs=20)
    assert (again.rows, again.texts) == (actual.rows, actual.texts)
    np.testing.assert_array_equal(actual.slopes, again.slopes)


def test_noise_differs_from_chance_no_more_often_than_it_says():
    """Sentences whose states are noise, and rows whose slopes are noise about a direction of their own."""
    rng, fired = np.random.default_rng(0), 0
    for _ in range(200):
        slopes = rng.normal(size=(24, 32)) + 2 * rng.normal(size=32)
        chance = (slopes @ rng.normal(size=(32, 20)) > 0).mean(axis=0)
        own = (slopes @ (rng.normal(size=32)[:, None] + 0.1 * rng.normal(size=(32, 20))) > 0).mean()
        fired += module._p_values(np.array([abs(own - 0.5)]), np.abs(chance - 0.5)[None])[0] < 0.05
    assert fired < 0.1 * 200


def test_sentences_drawn_from_the_others_are_no_concept(tiny_bert):
    actual = concept_test(tiny_bert, ROWS, DOG[::4], [*DOG[1::4], *DOG[2::4], *DOG[3::4]], "word", "dog", runs=12)
    assert not actual.is_significant[1:].any()


def test_the_slope_of_a_class_and_a_pair_of_which_text_a_is_read(monkeypatch):
    monkeypatch.setattr(module, "_classifiers", fixed)
    bert, texts = made(pair=False), ["it was a film", "a good film"]
    words = [f"{a} {b} {c}" for a in ("a", "it", "was") for b in ("a", "it") for c in ("bad", "film", "it", "a")]
    rows = [TextRow(1, texts[0]), TextRow(2, texts[1], "it was bad")]
    actual = concept_test(bert, rows, words[:8], words[8:], "class", "good", runs=2)
    vector = fixed(np.zeros((24, 16)), None, None, 8, 2)[0][0].mean(axis=0).astype(np.float32)
    for index, text in enumerate(texts):
        trace = bert.trace(text)
        (state, *_) = bert.hooked().states(trace.token_ids[None], trace.segments[None])
        step = 1e-3 * vector
        ends = [log_odds(bert, bert.hooked().finish(state + sign * step, 0), actual.target) for sign in (1, -1)]
        assert actual.slopes[0, index] == pytest.approx((ends[0] - ends[1])[0] / 2e-3, rel=0.03, abs=3e-3)
    assert concept_test(bert, rows, words[:8], words[8:], runs=2).target.label == "bad"


def test_regressions_several_labels_and_the_only_class():
    rows = [TextRow(1, "it was a film")]
    texts = [f"{a} {b} {c}" for a in ("a", "it", "was") for b in ("a", "it") for c in ("bad", "film", "it", "a")]
    value = concept_test(made(labels=(), regression=True), rows, texts[:8], texts[8:], runs=2)
    assert value.target.is_regression and np.isfinite(value.slopes).all()
    several = concept_test(made(multi_label=True), rows, texts[:8], texts[8:], "class", "so", runs=2)
    assert several.target.is_multi_label and np.abs(several.slopes).min() > 0
    with pytest.raises(InputError, match="only class, and always certain"):
        concept_test(made(labels=("one",)), rows, texts[:8], texts[8:])


@pytest.mark.parametrize("kind", [LEFT, APART])
def test_readers_of_one_side_are_tested_too(kind):
    actual = concept_test(make_reader(kind), [TextRow(1, "the cat [MASK]")], CAT, DOG, "word", "dog", runs=2)
    assert np.isfinite(actual.slopes).all() and np.abs(actual.slopes).max() > 0


def test_what_can_be_tested_and_what_cannot(tiny_bert, headless_bert):
    assert can_test(tiny_bert) == ("word", "next") and can_test(headless_bert) == ()
    assert can_test(made())[0] == "class"
    mistakes = {
        "can be asked about word or next, not 'class'": {"of": "class"},
        "Name the word": {"of": "word"},
        "made of: cat ##s": {"of": "word", "answer": "cats"},
        "The answer is IsNext or NotNext, not 'maybe'": {"of": "next", "answer": "maybe"},
        "at least 2 runs, not 1": {"of": "next", "runs": 1},
    }
    for sentence, options in mistakes.items():
        with pytest.raises(InputError, match=sentence):
            concept_test(tiny_bert, ROWS, CAT, DOG, **options)
    with pytest.raises(InputError, match="here are 3 and 32"):
        concept_test(tiny_bert, ROWS, [*CAT[:3], CAT[0]], DOG, "next")
    with pytest.raises(InputError, match="No row has a masked word"):
        concept_test(tiny_bert, ROWS[3:4], CAT, DOG, "word", "dog")
    with pytest.raises(InputError, match="No row is a pair"):
        concept_test(tiny_bert, ROWS[3:4], CAT, DOG, "next")
    with pytest.raises(
        MissingHead, match="no next-sentence head, no sentence-order head and no head of a text classifier"
    ):
        concept_test(headless_bert, ROWS, CAT, DOG)
    last = concept_test(tiny_bert, ROWS[3:4], CAT, DOG, "word", "dog", hide="last", runs=2)
    assert last.places == (0,) and last.target.position == 4


@pytest.mark.parametrize(
    "options, what", [({}, "no classes"), ({"sentence_order": True}, "no head for --sentence-order")]
)
def test_a_model_without_the_answer_names_the_options_it_has(tiny_bert, options, what):
    rest = "name the answer that is tested with --target or --next-sentence"
    with pytest.raises(InputError, match=f"{tiny_bert.name} has {what}: {rest}"):
        module.tcav(tiny_bert, ROWS, CAT, DOG, **options)


def test_steps_are_told_and_it_can_be_stopped(tiny_bert):
    steps = []
    concept_test(tiny_bert, ROWS, CAT, DOG, "next", runs=2, progress=lambda *now: steps.append(now))
    assert steps[-1] == (40 + 3 + 3, 40 + 3 + 3) and steps == sorted(steps)
    for stop in (8, 41, 44):
        with pytest.raises(Cancelled):
            concept_test(tiny_bert, ROWS, CAT, DOG, "next", runs=2, progress=lambda done, total: done < stop)
