"""Pairs, segments, truncation and padding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.tokenizers import (
    TextError,
    Truncation,
    pack_pair,
    pad_batch,
    plan_truncation,
    truncate_longest_first,
)


def test_pairs_equal_transformers_golden_results(tokenizer, case, golden):
    for (text_a, text_b, max_length), expected in zip(golden["pairs"], golden[case]["pairs"], strict=True):
        encoding = tokenizer.encode(text_a, text_b, max_length)
        assert encoding.token_ids.tolist() == expected["ids"]
        assert encoding.segment_ids.tolist() == expected["segments"]


@settings(max_examples=150, deadline=None)
@given(a=st.integers(0, 30), b=st.integers(1, 30), max_length=st.integers(3, 70))
def test_longest_first_equals_transformers(reference_tokenizers, a, b, max_length):
    options = {"truncation": "longest_first", "max_length": max_length, "return_special_tokens_mask": True}
    tokenized = reference_tokenizers["uncased"]("a " * a, "b " * b, **options)
    words = list(zip(tokenized["special_tokens_mask"], tokenized["token_type_ids"], strict=True))
    kept_lengths = (words.count((0, 0)), words.count((0, 1)))
    assert truncate_longest_first(a, b, max_length - 3) == kept_lengths


def test_a_pair_is_packed_with_everything_in_its_place(tokenizers):
    encoding = tokenizers["uncased"].encode("Two words", "unaffable!")
    assert encoding.tokens == ("[CLS]", "two", "words", "[SEP]", "una", "##ffa", "##ble", "!", "[SEP]")
    assert encoding.segment_ids.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert encoding.sources == (None, "a", "a", None, "b", "b", "b", "b", None)
    assert encoding.offsets == (None, (0, 3), (4, 9), None, (0, 3), (3, 6), (6, 9), (9, 10), None)
    assert encoding.word_ids == (None, 0, 1, None, 0, 0, 0, 1, None)
    assert encoding.truncated == (0, 0) and not encoding.truncated
    assert encoding.length == 9
    assert encoding.token_ids.dtype == encoding.segment_ids.dtype == np.int32


def test_an_empty_second_text_is_no_second_text(tokenizer):
    assert tokenizer.encode("a", "").tokens == tokenizer.encode("a").tokens == ("[CLS]", "a", "[SEP]")
    assert tokenizer.encode("", "b").segment_ids.tolist() == [0, 0, 1, 1]
    assert tokenizer.encode("", " ").tokens == ("[CLS]", "[SEP]", "[SEP]")


def test_a_typed_separator_keeps_its_source_and_offsets(tokenizers):
    encoding = tokenizers["uncased"].encode("a [SEP] b")
    assert encoding.tokens == ("[CLS]", "a", "[SEP]", "b", "[SEP]")
    assert encoding.sources == (None, "a", "a", "a", None)
    assert encoding.offsets[2] == (2, 7)


def test_truncation_says_how_many_tokens_of_which_side(tokenizer):
    encoding = tokenizer.encode("one two three four five six", "one two three", max_length=9)
    assert encoding.truncated == Truncation(tokens_a=3, tokens_b=0) and encoding.truncated
    assert encoding.length == 9
    encoding = tokenizer.encode("a " * 600)
    assert encoding.length == 512
    assert encoding.truncated == Truncation(tokens_a=90, tokens_b=0)
    encoding = tokenizer.encode("a " * 600, "b " * 600)
    assert encoding.length == 512
    assert encoding.truncated == Truncation(tokens_a=346, tokens_b=345)


@settings(max_examples=200, deadline=None)
@given(a=st.integers(0, 50), b=st.integers(0, 50), room=st.integers(0, 120))
def test_truncation_fills_the_room_and_never_cuts_the_shorter_below_the_longer(a, b, room):
    kept_a, kept_b = truncate_longest_first(a, b, room)
    assert 0 <= kept_a <= a and 0 <= kept_b <= b
    assert kept_a + kept_b == min(a + b, room)
    if kept_a < a:
        assert kept_a >= kept_b - 1
    if kept_b < b:
        assert kept_b >= kept_a - 1


@pytest.mark.parametrize(("second", "too_small"), [(None, 1), ("b", 2), (None, 0), ("b", -4)])
def test_no_room_for_the_special_tokens_is_an_error(tokenizer, second, too_small):
    with pytest.raises(TextError, match=f"max_length is {too_small}"):
        tokenizer.encode("a", second, max_length=too_small)


def test_negative_lengths_are_an_error():
    with pytest.raises(TextError, match="-1"):
        truncate_longest_first(3, -1, 10)


def test_packing_of_plain_ids():
    packed = pack_pair([7, 8, 9], [10], max_length=6, cls_id=1, sep_id=2)
    assert packed.token_ids.tolist() == [1, 7, 8, 2, 10, 2]
    assert packed.segment_ids.tolist() == [0, 0, 0, 0, 1, 1]
    assert packed.truncated == Truncation(1, 0)
    assert pack_pair(np.array([5], np.int32), None).token_ids.tolist() == [101, 5, 102]
    assert plan_truncation(10, 10, 13) == Truncation(5, 5)


def test_padding_makes_a_rectangle(tokenizer):
    sequences = [tokenizer.encode("a"), tokenizer.pack_pair([5], [6]), ([1, 2], [0, 1])]
    batch = pad_batch(sequences, length=6, pad_id=9)
    assert batch["token_ids"].tolist()[2] == [1, 2, 9, 9, 9, 9]
    assert batch["segment_ids"].tolist()[1:] == [[0, 0, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0]]
    assert batch["padding_mask"].sum(axis=1).tolist() == [3, 5, 2]
    assert all(array.dtype == np.int32 and array.shape == (3, 6) for array in batch.values())
    assert pad_batch(sequences)["token_ids"].shape == (3, 5)
    assert pad_batch([])["token_ids"].shape == (0, 0)


def test_padding_refuses_to_cut():
    with pytest.raises(TextError, match="3 tokens.*2 long"):
        pad_batch([([1, 2, 3], [0, 0, 0])], length=2)


def test_encode_batch_equals_encode(tokenizer, golden):
    pairs = [tuple(row[:2]) for row in golden["pairs"]] + ["a single text", ("another", None)]
    for packed, pair in zip(tokenizer.encode_batch(pairs, max_length=9), pairs, strict=True):
        one = tokenizer.encode(*((pair, None) if isinstance(pair, str) else pair), max_length=9)
        assert packed.token_ids.tolist() == one.token_ids.tolist()
        assert packed.segment_ids.tolist() == one.segment_ids.tolist()
        assert packed.truncated == one.truncated
        assert packed.length == one.length


def test_encode_batch_takes_one_text_for_one_text_and_refuses_what_is_no_pair(tokenizer):
    (packed,) = tokenizer.encode_batch("a single text")
    assert packed.token_ids.tolist() == tokenizer.encode("a single text").token_ids.tolist()
    for entry in (("a", "b", "c"), ["a"], 3, None):
        with pytest.raises(TextError, match="Give texts or pairs"):
            tokenizer.encode_batch(["a", entry])
