"""Batches of few lengths: little padding, every row once an epoch, the same order from any step on."""

from itertools import combinations, islice

import numpy as np

from bert_tf.finetuning.data.encoded_examples import EncodedExamples, choose_lengths, fitting
from bert_tf.finetuning.epoch_feed import EpochFeed

RNG = np.random.default_rng(0)


def make_rows(lengths):
    ids = [np.full(length, 5 + index, np.int32) for index, length in enumerate(lengths)]
    return EncodedExamples(
        {"token_ids": ids, "segment_ids": [np.zeros(length, np.int32) for length in lengths]}, pad_id=7
    )


def test_a_batch_is_padded_masked_and_filled_up():
    rows = make_rows([3, 5])
    batch = rows.batch([1, 0], length=8, size=3)
    np.testing.assert_array_equal(batch["token_ids"][1], [5, 5, 5, 7, 7, 7, 7, 7])
    np.testing.assert_array_equal(batch["padding_mask"].sum(axis=1), [5, 3, 0])
    np.testing.assert_array_equal(batch["weights"], [1, 1, 0])


def test_choices_are_padded_on_their_last_axis():
    rows = EncodedExamples({"token_ids": [np.ones((2, 3), np.int32), np.ones((2, 4), np.int32)]})
    batch = rows.batch([0, 1])
    assert batch["token_ids"].shape == (2, 2, 4) and batch["padding_mask"][0].tolist() == [[1, 1, 1, 0]] * 2


def test_the_chosen_lengths_leave_the_least_padding():
    lengths = RNG.integers(3, 70, 50)
    possible = range(8, 73, 8)

    def cost(chosen):
        return sum(fitting(length, chosen) for length in lengths)

    best = min(
        cost(chosen) for count in (1, 2, 3) for chosen in combinations(possible, count) if chosen[-1] >= lengths.max()
    )
    chosen = choose_lengths(lengths, 3)
    assert cost(chosen) == best and len(chosen) <= 3
    assert choose_lengths([8, 8, 8], 4) == [8]


def test_an_epoch_has_every_row_once_in_another_order_each_time():
    feed = EpochFeed(make_rows(RNG.integers(3, 40, 45)), batch_size=8, seed=3)
    epochs = [[int(index) for batch in feed.epoch(number) for index in batch] for number in (0, 1)]
    assert feed.steps == 6 and all(sorted(epoch) == list(range(45)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    weights = sum(batch["weights"].sum() for batch, _ in islice(feed.from_step(0), 6))
    assert weights == 45


def test_batches_hold_rows_of_like_length():
    lengths = RNG.integers(3, 129, 1000)
    feed = EpochFeed(make_rows(lengths), batch_size=16)
    computed = sum(batch["token_ids"].size for batch, _ in islice(feed.from_step(0), feed.steps))
    assert computed < 1.3 * lengths.sum() < 16 * feed.steps * 128
    assert len({batch["token_ids"].shape for batch, _ in islice(feed.from_step(0), feed.steps)}) <= 4


def test_no_batch_is_longer_than_the_model_reads():
    feed = EpochFeed(make_rows(np.array([50, 49, 12, 50])), batch_size=2, longest=50)
    assert feed.lengths == [16, 50]
    assert max(batch["token_ids"].shape[1] for batch, _ in islice(feed.from_step(0), feed.steps)) == 50


def test_the_feed_goes_on_from_any_step():
    feed = EpochFeed(make_rows(RNG.integers(3, 20, 30)), batch_size=4, seed=1)
    straight = list(islice(feed.from_step(0), 20))
    for begin in (5, feed.steps, 13):
        for (ours, position), (theirs, at) in zip(islice(feed.from_step(begin), 4), straight[begin:]):
            assert position == at
            np.testing.assert_array_equal(ours["token_ids"], theirs["token_ids"])
