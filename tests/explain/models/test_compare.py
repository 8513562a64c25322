"""Two models on one input."""

import gc
import weakref

import numpy as np
import pytest

from bert_tf.errors import InputError, NotComparable
from bert_tf.explain import aligned_layers, compare, jensen_shannon, side_by_side
from bert_tf.explain.models.compare import common_vocabulary
from tests.conftest import make_bert


def _compare(one, other, text_a, text_b=None, mask=(), **options):
    return compare(
        one.trace(text_a, text_b, mask),
        other.trace(text_a, text_b, mask),
        one.tokenizer,
        other.tokenizer,
        one.config.num_hidden_layers,
        other.config.num_hidden_layers,
        **options,
    )


def test_a_model_agrees_with_itself(tiny_bert):
    result = _compare(tiny_bert, tiny_bert, "the [MASK] sat", "it ran")
    (agreement,) = result.masks
    assert agreement.overlap == 1.0 and agreement.divergence == pytest.approx(0.0, abs=1e-9)
    assert agreement.coverage_a == pytest.approx(1.0) and result.is_next_difference == 0.0
    assert not result.case_folded and result.layers == ((0, 0), (1, 1))


def test_different_vocabularies_are_compared_by_their_strings(tiny_bert, other_bert):
    result = _compare(tiny_bert, other_bert, "The [MASK] is the capital of France", top_k=3)
    (agreement,) = result.masks
    assert result.case_folded and 0 < agreement.divergence <= 1
    assert 0 < agreement.coverage_a <= 1 and 0 < agreement.coverage_b <= 1
    assert result.common_tokens < tiny_bert.tokenizer.vocab_size
    assert len(agreement.predictions_a) == len(agreement.predictions_b) == 3


def test_folding_adds_up_the_cases_of_a_word(tiny_bert, other_bert):
    common = common_vocabulary(tiny_bert.tokenizer, other_bert.tokenizer)
    upper, lower = (np.zeros(tiny_bert.tokenizer.vocab_size) for _ in range(2))
    upper[tiny_bert.tokenizer.token_to_id("A")] = 1.0
    lower[tiny_bert.tokenizer.token_to_id("a")] = 1.0
    np.testing.assert_array_equal(common.project_a(upper)[0], common.project_a(lower)[0])
    mask = np.zeros(tiny_bert.tokenizer.vocab_size)
    mask[tiny_bert.tokenizer.mask_id] = 1.0
    assert common.project_a(mask)[1] == 1.0


def test_a_common_vocabulary_is_kept_as_long_as_its_tokenizers():
    one, other = make_bert().tokenizer, make_bert(layers=1).tokenizer
    common = weakref.ref(common_vocabulary(one, other))
    assert common_vocabulary(one, other) is common()
    del other
    gc.collect()
    assert common() is None


def test_masks_are_matched_by_their_place_in_the_text(tiny_bert, other_bert):
    text = "She played in Paris"
    one = tiny_bert.trace(text, mask=["She", "Paris"])
    other = other_bert.trace(text, mask=["Paris", "in"])
    result = compare(one, other, tiny_bert.tokenizer, other_bert.tokenizer, 2, 3)
    assert len(result.masks) == 1
    assert result.unmatched_a == (1,) and result.unmatched_b == (3,)


def test_a_model_without_a_head_leaves_that_part_out(tiny_bert, headless_bert):
    result = _compare(tiny_bert, headless_bert, "the [MASK]", "it ran")
    assert result.masks == () and result.is_next_difference is None


def test_other_texts_are_not_comparable(tiny_bert):
    one, other = tiny_bert.trace("the cat"), tiny_bert.trace("the dog")
    with pytest.raises(NotComparable, match="different texts"):
        compare(one, other, tiny_bert.tokenizer, tiny_bert.tokenizer, 2, 2)


def test_the_divergence_is_symmetric_and_between_nothing_and_one_bit():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.0, 1.0])
    assert jensen_shannon(p, p) == 0.0
    assert jensen_shannon(p, q) == pytest.approx(1.0)
    r = np.array([0.2, 0.3, 0.5])
    assert jensen_shannon(p, r) == pytest.approx(jensen_shannon(r, p))
    middle = (p + r) / 2
    by_hand = 0.5 * sum(a * np.log2(a / m) for a, m in zip(p, middle) if a) + 0.5 * np.sum(r * np.log2(r / middle))
    assert jensen_shannon(p, r) == pytest.approx(by_hand)


def test_distributions_of_other_shapes_are_refused():
    even = np.full((2, 4), 0.25)
    assert jensen_shannon(even, even[0]).tolist() == [0, 0] and jensen_shannon([0.5, 0.5], [0.5, 0.5]) == 0
    for p, q in ((even[0], even[0, :3]), (even, even[:, :1]), (even, even[[0, 0, 0]]), (0.5, 0.5)):
        with pytest.raises(InputError, match="Distributions to compare have equal shapes, not"):
            jensen_shannon(p, q)


@pytest.mark.parametrize("a, b", [(1, 1), (2, 3), (6, 12), (12, 24), (24, 12), (12, 2)])
def test_layers_are_paired_at_the_same_relative_depth(a, b):
    pairs = aligned_layers(a, b)
    assert len(pairs) == max(a, b) and pairs[-1] == (a - 1, b - 1)
    assert {i for i, _ in pairs} == set(range(a)) and {j for _, j in pairs} == set(range(b))
    for i, j in pairs:
        assert abs((i + 1) / a - (j + 1) / b) <= 1 / min(a, b)
    assert list(pairs) == sorted(pairs)


@pytest.mark.parametrize("layer, pair", [(None, (3, 11)), (3, (3, 11)), (0, (0, 2)), (2, (2, 8))])
def test_a_chosen_layer_is_compared_with_the_one_that_ends_at_the_same_depth(layer, pair):
    shallow, deep = (make_bert(layers=layers, hidden=8, heads=2) for layers in (4, 12))
    trace = shallow.trace("the cat sat")
    actual = side_by_side(shallow, trace, deep, layer=layer).attention
    assert (actual.layer_a, actual.layer_b) == pair
    expected = trace.attentions[pair[0]] - deep.trace("the cat sat").attentions[pair[1]]
    np.testing.assert_allclose(actual.difference, expected.mean(axis=0), atol=1e-5)


def test_layer_counts_that_are_not_those_of_the_traces(tiny_bert, other_bert):
    traces = [bert.trace("the [MASK] sat") for bert in (tiny_bert, other_bert)]
    with pytest.raises(InputError, match="layers_a is 3, but trace_a has 2 layers"):
        compare(*traces, tiny_bert.tokenizer, other_bert.tokenizer, 3, 2)
