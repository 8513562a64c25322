"""LIME against the normal equations of its own samples, and where the truth is known to be a sum."""

import numpy as np
import pytest

from bert_tf.errors import Cancelled, InputError
from bert_tf.explain import lime, mask_target, next_sentence_target, occlusion
from bert_tf.explain.attribution.lime import fit_linear_model, sample_word_masks
from tests.explain.attribution.test_hotflip import _answers

TEXTS = ("the cats sat on the [MASK]", "it ran")


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace(*TEXTS)


@pytest.fixture(scope="module", params=["mask", "next sentence"])
def target(request, tiny_bert, trace):
    return mask_target(tiny_bert, trace) if request.param == "mask" else next_sentence_target(tiny_bert, trace)


def _nearness(kept):
    """What each sample counts, by the cosine distance of its row and one of ones, in hundredths as the authors' program
    has it."""
    near = []
    for row in kept.astype(float):
        lengths = np.linalg.norm(row) * np.sqrt(row.size)
        distance = 1 - row.sum() / lengths if lengths else 1.0
        near.append(np.sqrt(np.exp(-((100 * distance) ** 2) / 25**2)))
    return np.array(near)


def _solved(kept, scores, ridge):
    """Weights, then the constant, by numpy alone."""
    near, design = _nearness(kept), np.column_stack([kept, np.ones(len(kept))])
    penalty = np.diag([ridge] * kept.shape[1] + [0.0])
    return np.linalg.solve(design.T @ (near[:, None] * design) + penalty, design.T @ (near * scores))


@pytest.mark.parametrize("baseline", ["[MASK]", "[PAD]"])
def test_the_scores_solve_the_normal_equations_of_covered_texts(tiny_bert, trace, target, baseline):
    actual = lime(tiny_bert, trace, target, samples=60, baseline=baseline, seed=3)
    words = [word for word in trace.words() if word.text != "[MASK]"]
    kept = sample_word_masks(len(words), 60, seed=3)
    scores = []
    for row in kept:
        text_a, text_b = (list(text) for text in TEXTS)
        for word, there in zip(words, row):
            if not there:
                (text_a if word.source == "a" else text_b)[word.start : word.end] = [None] * (word.end - word.start)
        ids = np.array(trace.token_ids)
        for place, (offset, source) in enumerate(zip(trace.offsets, trace.sources)):
            if source and {"a": text_a, "b": text_b}[source][offset[0]] is None:
                ids[place] = tiny_bert.tokenizer.vocab.index(baseline)
        covered = type(trace)(**{**vars(trace), "token_ids": ids})
        scores.append(_answers(tiny_bert, covered, target)[target.id])
    weights = _solved(kept, np.array(scores), 1e-3)[:-1]
    by_word = {one.word: one.score for one in actual.words}
    assert [by_word[word] for word in words] == pytest.approx(weights, abs=1e-3)
    assert (
        actual.weighted_r2 == pytest.approx(fit_linear_model(kept, np.array(scores), seed=3)[1], abs=1e-2)
        and actual.weighted_r2 <= 1
    )
    assert actual.log_probability == pytest.approx(_answers(tiny_bert, trace, target)[target.id], abs=1e-4)
    # What the model adds and what is hidden scores nothing; both pieces of a word score alike.
    fixed = [place for place, source in enumerate(trace.sources) if source is None or place in trace.masks]
    assert not actual.scores[fixed].any() and actual.scores[2] == actual.scores[3]
    assert actual.words[1].score == pytest.approx(actual.scores[2:4].sum())


def test_the_fit_is_that_of_each_draw_by_the_other_ones():
    # Ten different draws besides the input: each is held out once, alone.
    rows = np.array([[number >> bit & 1 for bit in range(4)] for number in range(15, 4, -1)], bool)
    scores = np.random.default_rng(4).normal(size=len(rows)) + rows @ [2.0, 1.0, -1.0, 0.5]
    near, missed, spread = _nearness(rows), 0.0, 0.0
    for out in range(1, len(rows)):
        left = np.arange(len(rows)) != out
        solved = _solved(rows[left], scores[left], 1e-3)
        missed += near[out] * (scores[out] - rows[out] @ solved[:-1] - solved[-1]) ** 2
        spread += near[out] * (scores[out] - np.average(scores[left], weights=near[left])) ** 2
    weights, fit = fit_linear_model(rows, scores)
    assert fit == pytest.approx(1 - missed / spread, abs=1e-6) and weights == pytest.approx(
        _solved(rows, scores, 1e-3)[:-1], abs=1e-6
    )
    # Said twice, a draw is still not known before it is held out.
    twice = np.concatenate([np.arange(len(rows)), np.arange(1, len(rows))])
    assert fit_linear_model(rows[twice], np.random.default_rng(0).normal(size=len(rows))[twice])[1] < 0.3


@pytest.mark.parametrize("words, samples", [(30, 128), (250, 128), (400, 64), (4, 128)])
def test_noise_is_foretold_by_nothing(words, samples):
    for seed in range(3):
        noise = np.random.default_rng(100 + seed).normal(size=samples)
        weights, fit = fit_linear_model(sample_word_masks(words, samples, seed), noise, seed=seed)
        assert fit < 0.1 and weights.any()


@pytest.mark.parametrize("words", [1, 2, 10, 100])
def test_with_more_samples_than_words_the_scores_are_not_shrunk(words):
    kept = sample_word_masks(words, 128)
    truth = np.zeros(words)
    truth[0] = 5.0
    weights, fit = fit_linear_model(kept, kept @ truth)
    assert weights == pytest.approx(truth, abs=0.15)
    assert fit is None if words == 1 else fit > 0.99


def test_of_a_sum_it_finds_the_summands():
    kept, truth = sample_word_masks(6, 200, seed=1), np.array([2.0, -1.0, 0.0, 0.5, 0.0, 3.0])
    weights, fit = fit_linear_model(kept, kept @ truth - 4, ridge=1e-9)
    assert weights == pytest.approx(truth, abs=1e-6) and fit == pytest.approx(1)
    # With a product of two words, which no sum is, less is explained, and the more the wider it looks.
    together = kept @ truth + 6 * (kept[:, 0] & kept[:, 1])
    near, far = (fit_linear_model(kept, together, width)[1] for width in (0.1, 10))
    assert far < near < 0.999


def test_a_model_that_adds_up_gets_its_own_words_back(tiny_bert, trace, target, monkeypatch):
    worth = np.random.default_rng(0).normal(size=trace.length)

    def added(bert, ids, segments, target, progress=None):
        return ((ids == trace.token_ids) * worth).sum(axis=1)

    monkeypatch.setattr("bert_tf.explain.attribution.lime.target_log_probabilities", added)
    actual = lime(tiny_bert, trace, target, ridge=1e-9)
    wanted = [0.0 if word.text == "[MASK]" else worth[list(word.positions)].sum() for word in trace.words()]
    assert [one.score for one in actual.words] == pytest.approx(
        wanted, abs=1e-6
    ) and actual.weighted_r2 == pytest.approx(1)


def test_as_many_words_are_covered_as_a_fair_draw_says():
    kept = sample_word_masks(8, 4000)
    assert kept[0].all()
    covered = (~kept[1:]).sum(axis=1)
    assert np.bincount(covered, minlength=9)[1:] == pytest.approx(np.full(8, 3999 / 8), rel=0.15)
    assert (~kept[1:]).mean(axis=0) == pytest.approx(np.full(8, 4.5 / 8), abs=0.03)


def test_the_draw_is_that_of_its_seed(tiny_bert, trace, target):
    first, again, other = (lime(tiny_bert, trace, target, 20, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.scores, again.scores)
    assert not np.allclose(first.scores, other.scores, atol=1e-3)


def test_equal_inputs_are_read_once(tiny_bert, target):
    trace, seen = tiny_bert.trace("the cat", "it [MASK]"), []
    asked = type(target)(4 + 2, 7, "?") if target.position else target
    lime(tiny_bert, trace, asked, 300, progress=lambda *at: seen.append(at))
    assert seen == [(8, 8)]


def test_one_word_is_worth_what_it_costs_to_cover_it(tiny_bert):
    trace = tiny_bert.trace("the [MASK]")
    target = mask_target(tiny_bert, trace)
    actual = lime(tiny_bert, trace, target, ridge=0)
    np.testing.assert_allclose(actual.scores, occlusion(tiny_bert, trace, target).scores, atol=1e-4)
    assert actual.weighted_r2 is None  # there is one other text, and nothing to foretell it from


def test_without_a_word_to_cover_there_is_no_model(tiny_bert):
    trace = tiny_bert.trace("[MASK]")
    actual = lime(tiny_bert, trace, mask_target(tiny_bert, trace))
    assert actual.weighted_r2 is None and not actual.scores.any() and np.isfinite(actual.log_probability)


def test_long_work_can_be_cancelled(tiny_bert, trace, target):
    with pytest.raises(Cancelled, match="Stopped after"):
        lime(tiny_bert, trace, target, progress=lambda done, total: False)


@pytest.mark.parametrize(
    "name, value, says",
    [
        ("samples", 1, "samples.*1"),
        ("samples", 9.5, "samples.*9.5"),
        ("width", 0, "width"),
        ("ridge", -1, "ridge"),
        ("baseline", "nothing", "'nothing' is no token"),
    ],
)
def test_bad_settings_are_refused(tiny_bert, trace, target, name, value, says):
    with pytest.raises(InputError, match=says):
        lime(tiny_bert, trace, target, **{name: value})
