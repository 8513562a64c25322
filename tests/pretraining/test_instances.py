"""Statistics of the pre-training instances, as properties."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.pretraining.data.corpus import MemoryCorpus
from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.data.packing import (
    check_documents,
    document_pairs,
    make_pairs,
    pack_pairs,
)
from bert_tf.pretraining.objectives.masking import MaskSettings, mask_batch
from bert_tf.tokenizers import Tokenizer, read_tokenizer
from tests.conftest import small_vocabulary

TOKENIZER = Tokenizer(small_vocabulary(), lower_case=False)
WORDS = [i for i, token in enumerate(TOKENIZER.vocab) if i not in TOKENIZER.special_ids]


class Documents:
    """A corpus in memory in which a token tells its document: tokens of document d are WORDS[d]."""

    def __init__(self, count=6, sentences=8, seed=0):
        rng = np.random.default_rng(seed)
        self.all = [[np.full(rng.integers(1, 12), WORDS[d], np.int32) for _ in range(sentences)] for d in range(count)]

    def __len__(self):
        return len(self.all)

    def document(self, number):
        return self.all[number]


def many_pairs(seed, length=48, documents=6):
    corpus, rng = Documents(documents, seed=seed), np.random.default_rng(seed)
    return [(n, pair) for _ in range(3) for n in range(len(corpus)) for pair in document_pairs(corpus, n, rng, length)]


def random_batch(seed, rows=16, length=64):
    rng = np.random.default_rng(seed)
    ids = rng.choice(WORDS, (rows, length)).astype(np.int32)
    ends = rng.integers(4, length + 1, rows)
    padding = (np.arange(length) < ends[:, None]).astype(np.int32)
    ids[padding == 0] = TOKENIZER.pad_id
    ids[:, 0] = TOKENIZER.cls_id
    ids[np.arange(rows), ends - 1] = TOKENIZER.sep_id
    return {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": padding,
        "nsp_labels": np.zeros(rows, np.int32),
    }


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(8, 100))
def test_pairs_fit_and_random_segments_come_from_another_document(seed, length):
    for number, pair in many_pairs(seed, length):
        assert len(pair.a) + len(pair.b) <= length - 3
        assert len(pair.a) and len(pair.b)
        assert set(pair.a) == {WORDS[number]}
        assert (set(pair.b) != {WORDS[number]}) == pair.not_next


def test_about_half_of_the_pairs_are_random():
    share = np.mean([pair.not_next for seed in range(30) for _, pair in many_pairs(seed)])
    assert 0.45 < share < 0.65  # a lone sentence left over must take a random partner


def test_one_document_alone_gives_only_true_pairs():
    assert not any(pair.not_next for _, pair in many_pairs(1, documents=1))


def test_no_random_segment_comes_from_another_part_of_the_same_document():
    parts, sources = Documents(6, seed=4).all, [0, 1, 1, 1, 2, 2]
    corpus = MemoryCorpus(parts, sources)
    of_word = {WORDS[number]: source for number, source in enumerate(sources)}
    partners = {number: set() for number in range(6)}
    for seed in range(40):
        for number in range(6):
            for pair in document_pairs(corpus, number, np.random.default_rng((seed, number)), 48):
                if pair.not_next:
                    assert of_word[int(pair.b[0])] != sources[number]
                    partners[number].add(WORDS.index(int(pair.b[0])))
    assert partners[0] == {1, 2, 3, 4, 5} and partners[2] == {0, 4, 5} and partners[5] == {0, 1, 2, 3}
    alone = MemoryCorpus(parts, [7] * 6)
    assert not any(pair.not_next for pair in document_pairs(alone, 2, np.random.default_rng(0), 48))


def test_whole_documents_are_paired_as_without_sources():
    parts = Documents(5, seed=2).all
    for number in range(5):
        one, other = (
            [
                (pair.a.tolist(), pair.b.tolist(), pair.not_next)
                for pair in document_pairs(corpus, number, np.random.default_rng(number), 48)
            ]
            for corpus in (MemoryCorpus(parts), MemoryCorpus(parts, list(range(5))))
        )
        assert one == other


def test_next_sentences_need_two_documents():
    for objective, number in (("mlm+nsp", 2), ("mlm+nsp", None), ("mlm", 1), ("sop", 1)):
        check_documents(objective, number)
    with pytest.raises(TextError, match="one document.*blank line.*--objective mlm"):
        check_documents("mlm+nsp", 1)


def test_unused_sentences_are_put_back():
    """What a random second segment displaced comes again: no sentence of a document is lost."""
    sentences = [np.full(10, word, np.int32) for word in WORDS[:20]]
    corpus = Documents(2)
    corpus.all[0] = sentences
    for seed in range(20):
        pairs = list(document_pairs(corpus, 0, np.random.default_rng(seed), 64, short_probability=0.0))
        seen = {int(word) for pair in pairs for word in np.concatenate((pair.a, *(() if pair.not_next else (pair.b,))))}
        assert set(WORDS[:19]) <= seen


def test_packing():
    corpus, rng = Documents(), np.random.default_rng(0)
    pairs = list(document_pairs(corpus, 0, rng, 32))
    batch = pack_pairs(pairs, TOKENIZER, 32)
    for row, pair in enumerate(pairs):
        ids = batch["token_ids"][row]
        size = len(pair.a) + len(pair.b) + 3
        assert ids[0] == TOKENIZER.cls_id and ids[size - 1] == TOKENIZER.sep_id == ids[len(pair.a) + 1]
        assert batch["segment_ids"][row].tolist() == [0] * (len(pair.a) + 2) + [1] * (len(pair.b) + 1) + [0] * (
            32 - size
        )
        assert batch["padding_mask"][row].sum() == size
        assert batch["nsp_labels"][row] == pair.not_next


@pytest.mark.parametrize("name", ["roberta", "albert", "distilbert"])
def test_pairs_are_packed_as_the_tokenizer_packs_them(name):
    tokenizer = read_tokenizer(Path(__file__).parents[1] / "golden" / "family" / name)
    corpus = Documents(sentences=12)
    for objective in ("mlm+nsp", "sop", "mlm"):
        pairs = make_pairs(objective, corpus, range(len(corpus)), np.random.default_rng(0), tokenizer, 24)
        batch = pack_pairs(pairs, tokenizer, 24)
        for row, pair in enumerate(pairs):
            wanted = tokenizer.pack_pair(pair.a, pair.b, 24)
            assert not wanted.truncated and batch["padding_mask"][row].sum() == wanted.length
            assert batch["token_ids"][row, : wanted.length].tolist() == wanted.token_ids.tolist()
            assert batch["segment_ids"][row, : wanted.length].tolist() == wanted.segment_ids.tolist()
            assert not batch["segment_ids"][row, wanted.length :].any()
        assert max(map(int, batch["padding_mask"].sum(axis=1))) == 24


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 100_000), st.sampled_from([0.15, 0.2, 0.4]), st.booleans())
def test_masks_touch_no_special_token_and_labels_stand_where_masked(seed, rate, whole_words):
    batch = random_batch(seed)
    masked = mask_batch(batch, TOKENIZER, np.random.default_rng(seed), MaskSettings(rate, whole_words=whole_words))
    before, after, weights = batch["token_ids"], masked["token_ids"], masked["mask_weights"]
    rows = np.arange(len(before))[:, None]
    positions, labels = masked["mask_positions"], masked["mask_labels"]
    real = weights == 1
    assert not np.isin(labels[real], list(TOKENIZER.special_ids)).any()
    assert (labels[real] == before[rows, positions][real]).all()
    assert not labels[~real].any() and not positions[~real].any()
    chosen = np.zeros(before.shape, bool)
    chosen[np.broadcast_to(rows, positions.shape)[real], positions[real]] = True
    assert (before[~chosen] == after[~chosen]).all()
    assert (np.diff(positions, axis=1)[real[:, 1:]] > 0).all()  # each position once, in order
    count = weights.sum(1)
    wanted = np.maximum(1, np.rint(batch["padding_mask"].sum(1) * rate))
    assert (count <= wanted).all()
    if not whole_words:
        assert (count == np.minimum(wanted, (batch["padding_mask"].sum(1) - 2))).all()


def test_eighty_ten_ten():
    batch = random_batch(3, rows=2000)
    masked = mask_batch(batch, TOKENIZER, np.random.default_rng(1))
    real = masked["mask_weights"] == 1
    rows = np.broadcast_to(np.arange(2000)[:, None], real.shape)[real]
    now = masked["token_ids"][rows, masked["mask_positions"][real]]
    labels = masked["mask_labels"][real]
    assert np.mean(now == TOKENIZER.mask_id) == pytest.approx(0.8, abs=0.01)
    assert np.mean(now == labels) == pytest.approx(0.1 + 0.1 / len(WORDS), abs=0.01)
    assert not np.isin(now[now != TOKENIZER.mask_id], list(TOKENIZER.special_ids)).any()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 100_000))
def test_whole_words_are_masked_whole(seed):
    batch = random_batch(seed)
    masked = mask_batch(batch, TOKENIZER, np.random.default_rng(seed), MaskSettings(0.3, whole_words=True))
    for row in range(len(batch["token_ids"])):
        chosen = set(masked["mask_positions"][row][masked["mask_weights"][row] == 1].tolist())
        ids = batch["token_ids"][row]
        for position in range(1, len(ids)):
            before = TOKENIZER.vocab[ids[position - 1]]
            # No text has a piece after a mark of punctuation; one that had would begin a word there.
            alone = before in [*".,;:!?'\"()-", *TOKENIZER.special_tokens]
            if TOKENIZER.vocab[ids[position]].startswith("##") and not alone:
                assert (position in chosen) == (position - 1 in chosen)


@pytest.mark.parametrize("name", ["roberta", "albert"])
@pytest.mark.parametrize("masks", [MaskSettings(0.3, whole_words=True), MaskSettings(0.3, ngram=3)])
def test_whole_words_are_masked_whole_whatever_the_tokenizer(name, masks):
    tokenizer = read_tokenizer(Path(__file__).parents[1] / "golden" / "family" / name)
    # Sentences stand one after the other without a space, as a corpus gives them.
    texts = ("The unbelievable licences, works.", "Copyright holders redistribute!") * 8
    tokens = [tokenizer.tokenize(text) for text in texts]
    ids = np.concatenate([[tokenizer.cls_id], *(one.ids for one in tokens), [tokenizer.sep_id]]).astype(np.int32)
    words, first = [], 0
    for one in tokens:
        words += [first + number for number in one.word_ids]
        first = words[-1] + 1
    words = np.array(words)
    assert len(words) > 1.2 * first  # some words have several pieces
    batch = {"token_ids": np.tile(ids, (20, 1)), "padding_mask": np.ones((20, len(ids)), np.int32)}
    masked = mask_batch(batch, tokenizer, np.random.default_rng(0), masks)
    alone = 0
    for row in range(20):
        chosen = np.zeros(len(ids), bool)
        chosen[masked["mask_positions"][row][masked["mask_weights"][row] == 1]] = True
        shares = np.bincount(words, weights=chosen[1:-1]) / np.bincount(words)
        assert set(shares) == {0, 1}
        places = np.flatnonzero(shares)
        alone += np.sum(~np.isin(places + 1, places) & ~np.isin(places - 1, places))
    assert alone > 0  # words are not hung together


@pytest.mark.parametrize("are_words", [True, False])
def test_ideographs_are_masked_one_by_one_where_they_are_words(are_words):
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "##我", "##爱", "##ing"]
    tokenizer = Tokenizer(vocabulary, lower_case=False, tokenize_chinese_chars=are_words)
    ids = np.tile(np.array([2, 6, 7, 5, 8, 3] * 5, np.int32), (20, 1))
    batch = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    masked = mask_batch(batch, tokenizer, np.random.default_rng(0), MaskSettings(0.3, whole_words=True))
    chosen = np.zeros(ids.shape, bool)
    for row in range(20):
        chosen[row, masked["mask_positions"][row][masked["mask_weights"][row] == 1]] = True
    first, second, word, ending = (chosen[ids == token] for token in (6, 7, 5, 8))
    assert np.array_equal(first, second) != are_words
    assert np.array_equal(word, ending)


def test_a_seed_gives_the_same_bytes_and_another_seed_others():
    batch = random_batch(0)
    first, again, other = (mask_batch(batch, TOKENIZER, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert all(first[name].tobytes() == again[name].tobytes() for name in first)
    assert first["token_ids"].tobytes() != other["token_ids"].tobytes()
