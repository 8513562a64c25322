"""What each objective's sequences and masks are made of, as properties."""

import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.pretraining.data.corpus import MemoryCorpus
from bert_tf.pretraining.data.packing import OBJECTIVES, make_pairs, pack_pairs
from bert_tf.pretraining.objectives.masking import (
    MaskSettings,
    _ngram_starts,
    continuation_pieces,
    mask_batch,
)
from bert_tf.tokenizers import Tokenizer
from tests.conftest import small_vocabulary

TOKENIZER = Tokenizer(small_vocabulary(), lower_case=False)
WORDS = np.array([i for i, token in enumerate(TOKENIZER.vocab) if i not in TOKENIZER.special_ids])
CLS, SEP, PAD = 1, 2, 0
#: Ids of its own for packing, so that a token can tell its document and place: 1000 d + place.
IDS = types.SimpleNamespace(cls_id=CLS, sep_id=SEP, pad_id=PAD, separators_between=1, second_segment=1)


def numbered_corpus(seed, documents=6, longest=14):
    rng = np.random.default_rng(seed)
    made = []
    for number in range(1, documents + 1):
        ends = np.cumsum(rng.integers(1, longest, rng.integers(1, 9)))
        made.append(np.split(np.arange(1000 * number, 1000 * number + ends[-1], dtype=np.int32), ends[:-1]))
    return MemoryCorpus(made)


def is_run(tokens):
    return (np.diff(tokens) == 1).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(8, 80))
def test_sentence_order_takes_two_segments_that_follow_one_another(seed, length):
    corpus = numbered_corpus(seed)
    for pair in make_pairs("sop", corpus, range(6), np.random.default_rng(seed), IDS, length):
        assert len(pair.a) + len(pair.b) <= length - 3 and is_run(pair.a) and is_run(pair.b)
        first, second = (pair.b, pair.a) if pair.not_next else (pair.a, pair.b)
        assert first[0] // 1000 == second[0] // 1000 and first[-1] < second[0]


def test_half_of_the_segments_are_swapped():
    pairs = [
        pair
        for seed in range(60)
        for pair in make_pairs("sop", numbered_corpus(seed), range(6), np.random.default_rng(seed), IDS, 48)
    ]
    assert len(pairs) > 300 and np.mean([pair.not_next for pair in pairs]) == pytest.approx(0.5, abs=0.07)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(8, 80))
def test_full_sentences_are_the_whole_text_in_order_and_as_full_as_can_be(seed, length):
    corpus, room = numbered_corpus(seed), length - 2
    rows = [pair.a for pair in make_pairs("mlm", corpus, range(6), np.random.default_rng(seed), IDS, length)]
    text = np.concatenate([sentence for number in range(6) for sentence in corpus.document(number)])
    assert np.array_equal(np.concatenate([row[row != SEP] for row in rows]), text)
    starts = {
        int(sentence[first]): len(sentence[first : first + room])
        for number in range(6)
        for sentence in corpus.document(number)
        for first in range(0, len(sentence), room)
    }
    for row, after in zip(rows, [*rows[1:], None]):
        assert 0 < len(row) <= room and row[0] != SEP and row[-1] != SEP
        # A separator wherever one document ends and another begins, and nowhere else.
        documents = row[row != SEP] // 1000
        assert (row == SEP).sum() == (np.diff(documents) != 0).sum()
        if after is not None:
            ends_document = after[0] // 1000 != row[-1] // 1000
            assert len(row) + ends_document + starts[int(after[0])] > room


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(OBJECTIVES), st.integers(8, 64))
def test_every_token_has_its_segment(seed, objective, length):
    pairs = make_pairs(objective, numbered_corpus(seed), range(6), np.random.default_rng(seed), IDS, length)
    batch = pack_pairs(pairs, IDS, length)
    for row, pair in enumerate(pairs):
        one = np.concatenate(([CLS], pair.a, [SEP]))
        two = np.zeros(0, int) if pair.b is None else np.concatenate((pair.b, [SEP]))
        size = len(one) + len(two)
        assert batch["token_ids"][row].tolist() == [*one, *two, *[PAD] * (length - size)]
        assert batch["segment_ids"][row].tolist() == [0] * len(one) + [1] * len(two) + [0] * (length - size)
        assert batch["padding_mask"][row].tolist() == [1] * size + [0] * (length - size)
        assert batch["nsp_labels"][row] == pair.not_next
    assert all(array.dtype == np.int32 for array in batch.values())


def word_corpus(seed, documents=6):
    rng = np.random.default_rng(seed)
    return MemoryCorpus(
        [
            [rng.choice(WORDS, rng.integers(2, 20)).astype(np.int32) for _ in range(rng.integers(2, 9))]
            for _ in range(documents)
        ]
    )


def masked(seed, objective, masks, length=48):
    rng = np.random.default_rng(seed)
    pairs = make_pairs(objective, word_corpus(seed), range(6), rng, TOKENIZER, length)
    batch = pack_pairs(pairs, TOKENIZER, length)
    return batch, mask_batch(batch, TOKENIZER, rng, masks)


MASKS = st.builds(
    MaskSettings,
    rate=st.sampled_from([0.1, 0.15, 0.4]),
    whole_words=st.booleans(),
    ngram=st.integers(1, 4),
    most=st.sampled_from([None, 1, 3, 20]),
)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from(OBJECTIVES), MASKS)
def test_masks_of_every_kind(seed, objective, masks):
    before, after = masked(seed, objective, masks)
    ids, positions, labels = before["token_ids"], after["mask_positions"], after["mask_labels"]
    real = after["mask_weights"] == 1
    assert positions.shape == (len(ids), masks.max_predictions(48)) == labels.shape
    rows = np.broadcast_to(np.arange(len(ids))[:, None], real.shape)
    chosen = np.zeros(ids.shape, bool)
    chosen[rows[real], positions[real]] = True
    # No special token is ever masked; labels stand where masked, and only there; the rest is as it was.
    assert not np.isin(ids[chosen], list(TOKENIZER.special_ids)).any()
    assert chosen.sum() == real.sum() and (labels[real] == ids[rows, positions][real]).all()
    assert not labels[~real].any() and not positions[~real].any()
    assert np.array_equal(after["token_ids"][~chosen], ids[~chosen])
    assert (real.sum(1) <= np.maximum(1, np.rint(before["padding_mask"].sum(1) * masks.rate))).all()
    assert masks.most is None or real.sum(1).max() <= masks.most
    assert not np.isin(after["token_ids"][chosen], list(TOKENIZER.special_ids - {TOKENIZER.mask_id})).any()
    if masks.whole_words or masks.ngram > 1:
        continues_document = continuation_pieces(TOKENIZER.vocab)[ids] & (before["padding_mask"] == 1)
        continues_document[:, 1:] &= ~np.isin(ids[:, :-1], list(TOKENIZER.special_ids))
        # A mark of punctuation is a word of its own, also where these random texts go on with a piece after it.
        marks = np.array([not any(map(str.isalnum, token.removeprefix("##"))) for token in TOKENIZER.vocab])[ids]
        continues_document &= ~marks
        continues_document[:, 1:] &= ~marks[:, :-1]
        assert (chosen[:, 1:] == chosen[:, :-1])[continues_document[:, 1:]].all()
    for name in ("segment_ids", "padding_mask", "nsp_labels"):
        assert after[name] is before[name]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("masks", [MaskSettings(), MaskSettings(whole_words=True), MaskSettings(ngram=3)])
def test_rates(objective, masks):
    made = [masked(seed, objective, masks) for seed in range(40)]
    real = sum(after["mask_weights"].sum() for _, after in made)
    tokens = sum(before["padding_mask"].sum() for before, _ in made)
    assert real / tokens == pytest.approx(0.15, abs=0.006)
    chosen = np.concatenate(
        [
            np.take_along_axis(after["token_ids"], after["mask_positions"], 1)[after["mask_weights"] == 1]
            for _, after in made
        ]
    )
    labels = np.concatenate([after["mask_labels"][after["mask_weights"] == 1] for _, after in made])
    assert np.mean(chosen == TOKENIZER.mask_id) == pytest.approx(0.8, abs=0.03)
    assert np.mean(chosen == labels) == pytest.approx(0.1, abs=0.03)


def test_runs_of_words_are_one_over_n_as_frequent():
    shape = (400, 60)
    starts = _ngram_starts(np.ones(shape, bool), np.ones(shape, bool), np.random.default_rng(0), 3)
    lengths = np.concatenate([np.diff(np.flatnonzero(row)) for row in starts])
    shares = np.bincount(lengths, minlength=4)[1:] / len(lengths)
    assert shares == pytest.approx(np.array([6, 3, 2]) / 11, abs=0.01)


def test_runs_stop_at_special_tokens():
    candidates = np.array([[False, True, True, False, True, True, False]] * 200)
    starts = _ngram_starts(np.ones_like(candidates), candidates, np.random.default_rng(1), 4)
    assert starts[:, [0, 1, 3, 4, 6]].all() and 0.1 < starts[:, 2].mean() < 0.9


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_seed_gives_the_same_bytes_and_another_seed_others(objective):
    first, again, other = (masked(seed, objective, MaskSettings(ngram=2))[1] for seed in (5, 5, 6))
    assert all(first[name].tobytes() == again[name].tobytes() for name in first)
    assert first["token_ids"].tobytes() != other["token_ids"].tobytes()


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"rate": 1.5}, "rate is 1.5"),
        ({"mask_share": 0.9, "random_share": 0.2}, "0.9 and 0.2"),
        ({"ngram": 0}, "up to 0 words"),
        ({"most": 0}, "cap of 0"),
    ],
)
def test_masks_that_cannot_be_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        MaskSettings(**settings)


def test_an_unknown_objective_is_refused():
    with pytest.raises(ValueError, match="no objective 'nsp'.*mlm, sop"):
        make_pairs("nsp", word_corpus(0), [0], np.random.default_rng(0), TOKENIZER)
