"""Two models on many rows."""

from types import SimpleNamespace

import pytest

from bert_tf.errors import Cancelled
from bert_tf.explain import agreement, compare
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.finetuning.task_settings import TaskSettings
from tests.conftest import make_bert

ROWS = (TextRow(1, "The cat sat."), TextRow(2, "The [MASK] ran.", "It sat."), TextRow(3, "The dog", None, ("horse",)))


def test_a_model_agrees_with_itself(tiny_bert):
    actual = agreement(tiny_bert, tiny_bert, ROWS, "last")
    assert (actual.same_top_prediction, actual.same_next, actual.pairs) == (1.0, 1.0, 1)
    assert actual.divergence == pytest.approx(0, abs=1e-6)


def test_rows_are_compared_as_one_by_one_and_the_most_different_come_first(tiny_bert, other_bert):
    actual = agreement(tiny_bert, other_bert, ROWS, "last", 3)
    assert [one.row.number for one in actual.rows][-1] == 3 and "horse" in actual.rows[-1].problem
    differences = [one.divergence for one in actual.rows[:-1]]
    assert differences == sorted(differences, reverse=True)
    for one in actual.rows[:-1]:
        mask = () if one.row.number == 2 else ["sat"]
        traces = [bert.trace(one.row.text_a, one.row.text_b, mask) for bert in (tiny_bert, other_bert)]
        alone = compare(*traces, tiny_bert.tokenizer, other_bert.tokenizer, 2, 3, 3)
        assert [m.divergence for m in one.masks] == pytest.approx([m.divergence for m in alone.masks], abs=1e-6)
        assert one.originals[0] == (None if one.row.number == 2 else traces[0].original_tokens[3])
    masks = [m for one in actual.rows for m in one.masks]
    same = [m.predictions_a[0].token.lower() == m.predictions_b[0].token.lower() for m in masks]
    assert actual.same_top_prediction == pytest.approx(sum(same) / len(same)) and actual.masks == len(masks)


def test_a_model_without_heads_leaves_its_part_out(tiny_bert, headless_bert):
    actual = agreement(tiny_bert, headless_bert, ROWS[:2], "last")
    assert (actual.masks, actual.same_top_prediction, actual.pairs, actual.same_next) == (0, None, 0, None)


def test_progress_counts_rows_and_stops_the_work(tiny_bert):
    seen = []
    agreement(tiny_bert, tiny_bert, ROWS, progress=lambda *step: seen.append(step))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(Cancelled):
        agreement(tiny_bert, tiny_bert, ROWS, progress=lambda *_: False)


def test_masks_of_two_inputs_are_paired_in_reading_order(tiny_bert):
    one = tiny_bert.trace("the [MASK] sat and the [MASK] ran")
    other = tiny_bert.trace("a [MASK]")
    actual = compare(one, other, tiny_bert.tokenizer, tiny_bert.tokenizer, 2, 2, across=True)
    assert [(m.position_a, m.position_b) for m in actual.masks] == [(one.masks[0], other.masks[0])]
    assert actual.unmatched_a == (one.masks[1],) and actual.unmatched_b == ()


@pytest.mark.parametrize("hide", ["last", "random"])
def test_the_hidden_word_is_one_that_both_models_read(tiny_bert, other_bert, hide):
    row = TextRow(1, "Legislators " * 20 + "sat")  # the cased model cuts the word to pieces and reads half of the text
    cut = tiny_bert.tokenizer.encode(row.text_a, max_length=tiny_bert.max_length)
    assert cut.truncated.tokens_a and not any(other_bert.trace(row.text_a).truncated)
    for pair in ((tiny_bert, other_bert), (other_bert, tiny_bert)):
        (actual,) = agreement(*pair, [row], hide).rows
        assert actual.problem is None and len(actual.masks) == 1 and actual.places[0]


@pytest.mark.parametrize("hide", ["last", "random"])
def test_no_word_is_hidden_that_a_classifier_does_not_read(tiny_bert, hide):
    judge = make_bert(seed=3)
    judge.task = SimpleNamespace(settings=TaskSettings("classify", ("bad", "good"), max_length=8))
    row = TextRow(1, "the cat sat on the mat " * 4)
    for pair in ((tiny_bert, judge), (judge, tiny_bert)):
        (actual,) = agreement(*pair, [row], hide).rows
        assert actual.problem is None and len(actual.masks) == 1
