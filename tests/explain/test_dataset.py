"""Many rows asked at once: every number is that of asking for the row alone."""

import numpy as np
import pytest

from bert_tf.explain import InputError, Word, pseudo_likelihood, score_rows, summarise_rows
from bert_tf.explain.dataset import RowResult
from bert_tf.explain.errors import Cancelled
from bert_tf.explain.rows import Row

ROWS = (
    Row(1, "the cats sat"),
    Row(2, "the [MASK] ran", "it sat"),
    Row(3, "the dog ran", None, ("dog",)),
    Row(4, "the dog", None, ("horse",)),
    *(Row(number, "the dog ran and sat") for number in range(5, 14)),
)


def test_every_row_is_answered_as_if_asked_alone(tiny_bert):
    found = score_rows(tiny_bert, ROWS, hide="last", top_k=3)
    assert [one.row for one in found] == list(ROWS)
    for one in found[:3]:
        mask = {1: Word("a", 2), 2: (), 3: "dog"}[one.row.number]
        alone = tiny_bert.predict(one.row.text_a, one.row.text_b, mask, 3)
        assert [m.position for m in one.masks] == [m.position for m in alone.masks]
        for mine, its in zip(one.masks, alone.masks):
            assert [p.id for p in mine.predictions] == [p.id for p in its.predictions]
            assert mine.original == its.original
            assert mine.predictions[0].probability == pytest.approx(its.predictions[0].probability, abs=1e-5)
        scored = pseudo_likelihood(tiny_bert, one.row.text_a, one.row.text_b)
        assert one.perplexity == pytest.approx(scored.perplexity, rel=1e-4)
    assert found[1].is_next == pytest.approx(tiny_bert.trace(*_texts(ROWS[1])).nsp.is_next, abs=1e-5)
    assert found[0].is_next is None and found[1].places == ()
    assert found[2].places == (("a", 1, -1),)


def _texts(row):
    return row.text_a, row.text_b


def test_a_row_that_cannot_be_read_says_why_and_the_others_are_answered(tiny_bert):
    found = score_rows(tiny_bert, ROWS, ("masks",))
    assert "horse" in found[3].problem and not found[3].masks
    assert all(one.masks and one.problem is None for one in found[4:])
    assert all(one.perplexity is None and one.is_next is None for one in found)


def test_progress_counts_rows_and_stops_the_work(tiny_bert):
    seen = []
    score_rows(tiny_bert, ROWS, ("masks",), progress=lambda *step: seen.append(step))
    assert seen == [(8, 13), (13, 13)]
    with pytest.raises(Cancelled):
        score_rows(tiny_bert, ROWS, ("perplexity",), progress=lambda done, total: False)


def test_what_a_model_has_no_head_for_is_not_asked(headless_bert):
    found = score_rows(headless_bert, ROWS[:1])
    assert found[0].masks == () and found[0].perplexity is None and found[0].problem is None


def test_unknown_questions_are_refused(tiny_bert):
    with pytest.raises(InputError, match="weather"):
        score_rows(tiny_bert, ROWS, ("weather",))


def test_the_summary_adds_up(tiny_bert):
    found = score_rows(tiny_bert, ROWS, hide="last", top_k=4)
    known = [m for one in found for m in one.masks if m.original is not None]
    summary = summarise_rows(found)
    assert (summary.rows, summary.masks, summary.next) == (13, len(known), 1)
    assert summary.first == np.mean([m.original == m.predictions[0].token for m in known])
    assert summary.among == np.mean([m.original in [p.token for p in m.predictions] for m in known])
    readable = [one.row for one in found if one.problem is None]
    scored = [pseudo_likelihood(tiny_bert, *_texts(row)).log_probabilities for row in readable]
    every = np.concatenate(scored)
    assert summary.perplexity == pytest.approx(np.exp(-np.nanmean(every)), rel=1e-3)
    empty = summarise_rows([RowResult(ROWS[0])])
    assert (empty.first, empty.follows, empty.perplexity) == (None, None, None)
