"""Nearest places in other texts, against cosines worked out one text at a time."""

import numpy as np
import pytest

from bert_tf.explain import InputError, nearest_contexts
from bert_tf.explain.errors import Cancelled
from bert_tf.explain.rows import Row

ROWS = (
    Row(1, "the bank of the river"),
    Row(2, "money in the bank", "the cats sat on the mat"),
    Row(3, "\u200b"),
    *(Row(number, "she has a big carrot " * (number % 3 + 1)) for number in range(4, 14)),
)


def by_hand(bert, layer, rows):
    """(row, position, token) of every place and their states."""
    places, states = [], []
    for row in rows:
        trace = bert.trace(row.text_a, row.text_b)
        for position, source in enumerate(trace.sources):
            if source is not None:
                places.append((row.number, position, trace.tokens[position]))
                states.append(trace.hidden_states[layer, position])
    return places, np.array(states, np.float64)


@pytest.mark.parametrize("layer, centred", [(0, False), (1, True), (2, True), (2, False)])
def test_the_nearest_places_are_those_of_the_largest_cosines(tiny_bert, layer, centred):
    trace = tiny_bert.trace("a bank by the river")
    queries = trace.hidden_states[layer, 2:4]
    found = nearest_contexts(tiny_bert, queries, layer, ROWS, 6, centred)
    places, states = by_hand(tiny_bert, layer, [row for row in ROWS if row.number != 3])
    middle = states.mean(axis=0) * centred
    rows, asked = states - middle, queries - middle
    cosines = (asked @ rows.T) / np.linalg.norm(asked, axis=1)[:, None] / np.linalg.norm(rows, axis=1)
    assert (found.tokens, found.rows) == (len(places), len(ROWS) - 1)
    for line, near in zip(cosines, found.nearest, strict=True):
        assert [one.similarity for one in near] == pytest.approx(np.sort(line)[::-1][:6], abs=1e-4)
        for one in near:
            place = places.index((one.row.number, one.position, one.token))
            assert line[place] == pytest.approx(one.similarity, abs=1e-4)


def test_a_token_is_nearest_to_itself_and_its_word_is_marked(tiny_bert):
    trace = tiny_bert.trace("money in the bank", "the cats sat on the mat")
    position = trace.tokens.index("##s")
    found = nearest_contexts(tiny_bert, trace.hidden_states[2, [position]], 2, ROWS, 1, True)
    ((one,),) = found.nearest
    assert (one.row.number, one.position, one.token) == (2, position, "##s")
    assert one.similarity == pytest.approx(1, abs=1e-5)
    assert one.parts == ("the ", "cats", " sat on the mat") and one.word.source == "b"


def test_what_is_read_is_bounded_and_can_be_stopped(tiny_bert):
    vector = tiny_bert.trace("the bank").hidden_states[1, [1]]
    found = nearest_contexts(tiny_bert, vector, 1, ROWS, 50, most=7)
    assert (found.tokens, found.rows, len(found.nearest[0])) == (7, 2, 7)
    seen = []
    nearest_contexts(tiny_bert, vector, 1, ROWS, progress=lambda *step: seen.append(step))
    assert seen == [(8, 13), (13, 13)]
    with pytest.raises(Cancelled):
        nearest_contexts(tiny_bert, vector, 1, ROWS, progress=lambda done, total: False)


@pytest.mark.parametrize("vectors, layer, rows, more, says", [
    (np.zeros((1, 32)), 3, ROWS, {}, "no layer 3"),
    (np.zeros((1, 5)), 1, ROWS, {}, r"shape \[1, 5\]"),
    (np.zeros(32), 1, ROWS, {}, r"shape \[32\]"),
    (np.zeros((1, 32)), 1, ROWS[2:3], {}, "nothing to read"),
    (np.zeros((1, 32)), 1, ROWS, {"most": 0}, "at least 1"),
    (np.zeros((1, 32)), 1, ROWS, {"top_k": 0}, "top_k"),
])  # fmt: skip
def test_mistakes_are_told(tiny_bert, vectors, layer, rows, more, says):
    with pytest.raises(InputError, match=says):
        nearest_contexts(tiny_bert, vectors, layer, rows, **more)
