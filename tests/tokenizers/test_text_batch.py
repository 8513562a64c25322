"""Both ways of tokenizing many texts give the same ids."""

import re
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.tokenizers import TextError, Tokenizer
from bert_tf.tokenizers import batch_tokenizer as batch_module
from bert_tf.tokenizers.batch_tokenizer import FAST_PATH_CHARACTERS, fast_path_bytes

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ALIKE_CHARACTERS = re.findall(
    f"[{FAST_PATH_CHARACTERS}]", "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
)


def assert_paths_agree(tokenizer, texts):
    fast, exact = tokenizer.batch_ids(texts, "fast"), tokenizer.batch_ids(texts, "exact")
    assert len(fast) == len(exact) == len(texts)
    for text, one, other in zip(texts, fast, exact, strict=True):
        assert one.dtype == other.dtype == np.int32
        assert one.tolist() == other.tolist(), repr(text)


def test_paths_agree_on_hard_strings(tokenizer, golden):
    assert_paths_agree(tokenizer, golden["texts"])
    for text, ids in zip(golden["texts"], tokenizer.batch_ids(golden["texts"], "fast"), strict=True):
        assert ids.tolist() == tokenizer.tokenize(text).ids.tolist()


def test_every_character_let_through_is_alike(tokenizer):
    # Alone, inside a word, at both ends of a word, doubled, and beside the next character of the list.
    texts = [f"{c} a{c}b {c}x y{c} e{c}{c} .{c}, 1{c}2" for c in ALIKE_CHARACTERS]
    texts += [f"{a}{b} a{b}{a}" for a, b in pairwise(ALIKE_CHARACTERS)]
    let_through = sum(fast_path_bytes(text) is not None for text in texts)
    assert let_through == len(texts)
    assert_paths_agree(tokenizer, texts)


def test_normalizing_characters_let_through_never_makes_them_longer(tokenizers):
    # The fast path counts the bytes of a word after normalizing, the check before.
    normalizer = tokenizers["uncased"]._rust.normalizer
    for character in ALIKE_CHARACTERS:
        after = normalizer.normalize_str(character).strip(" ")
        assert len(after.encode()) <= len(character.encode()), character


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.text(max_size=80) | st.text(ALIKE_CHARACTERS[:250], max_size=250), max_size=20))
def test_paths_agree_on_any_text(tokenizers, texts):
    for tokenizer in tokenizers.values():
        assert_paths_agree(tokenizer, texts)


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(st.text(alphabet=ALIKE_CHARACTERS, max_size=120), min_size=1, max_size=20))
def test_paths_agree_on_characters_let_through_in_any_order(tokenizers, texts):
    for tokenizer in tokenizers.values():
        assert_paths_agree(tokenizer, texts)


@pytest.mark.parametrize("length", [99, 100, 101, 102, 200])
@pytest.mark.parametrize("letter", ["a", "é", "中", "-", "'a"])
def test_paths_agree_around_the_longest_word(tokenizer, length, letter):
    word = (letter * length)[:length]
    assert_paths_agree(tokenizer, [word, f"in {word} out", f"{word}.", f"{word}\t{word}", f"{word} " * 3])


def test_long_words_special_tokens_and_odd_characters_take_the_exact_path():
    odd_characters = ("nul\0", "zero\u200bwidth", "ﬁ", "x²", "…", "e\u0301", "😀", "한", "\ud800")
    for text in ("a" * 101, "x [MASK] y", *odd_characters):
        assert fast_path_bytes(text) is None, repr(text)
    for text in ("", "plain text", "[mask]", "Zürich – “ok” €5", "a" * 100, "Москва 東京", "two\tcolumns\n"):
        assert fast_path_bytes(text) == text.encode()


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        ["a b", "a", "\u3000"],
        ["##", "a", "##a", "##b"],
        ["don't", "##'t", "##'", "'", "a", "##a", "##b", ".", "..", "##."],
        ["a" * 150, "##" + "a" * 200, "a", "##a"],
        ["[", "]", "[MASK", "##]", "mask", "é", "##é", "e", "##e"],
    ],
)
def test_paths_agree_on_odd_vocabularies(tokens, monkeypatch):
    monkeypatch.setattr(batch_module, "_MUCH_TEXT", 0)
    monkeypatch.setattr(batch_module, "_MUCH_TEXT_IF_LOADED", 0)
    texts = ["don't a,b .. ## #a aab a b café z ab'c  x", "- -- a-b", "aab", "[MASK]", "a.a..", "a" * 99]
    for lower_case in (True, False):
        tokenizer = Tokenizer([*SPECIAL, *tokens], lower_case)
        for text, ids in zip(texts, tokenizer.batch_ids(texts), strict=True):
            assert ids.tolist() == tokenizer.tokenize(text).ids.tolist()


@pytest.mark.parametrize("tokens", [[], ["a b", "a"]])
def test_a_vocabulary_without_fast_path_says_so(tokens):
    with pytest.raises(TextError, match="exact"):
        Tokenizer([*SPECIAL, *tokens]).batch_ids(["a"], "fast")


def test_many_chunks_keep_the_order(tokenizers, monkeypatch):
    monkeypatch.setattr(batch_module, "_BYTES_A_CALL", 50)
    texts = [f"line {number} " + "[MASK]" * (number % 3 == 0) for number in range(200)]
    assert_paths_agree(tokenizers["cased"], texts)


def test_auto_takes_the_fast_path_for_much_text_only(tokenizers, monkeypatch):
    tokenizer = Tokenizer(tokenizers["cased"].vocab, lower_case=False)
    assert tokenizer.batch_ids(["a"])[0].tolist() == tokenizer.tokenize("a").ids.tolist()
    assert tokenizer._batch._fast is None
    monkeypatch.setattr(batch_module, "_MUCH_TEXT", 10)
    monkeypatch.setattr(batch_module, "_MUCH_TEXT_IF_LOADED", 10)
    tokenizer.batch_ids(["more than ten characters"])
    assert tokenizer._batch._fast is not None


def test_without_tensorflow_text_auto_is_exact_and_fast_is_refused(tokenizers, monkeypatch):
    monkeypatch.setattr(batch_module, "_MUCH_TEXT", 0)
    monkeypatch.setattr(batch_module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "tensorflow_text", raising=False)
    tokenizer = Tokenizer(tokenizers["cased"].vocab, lower_case=False)
    assert tokenizer.batch_ids(["some text"])[0].tolist() == tokenizer.tokenize("some text").ids.tolist()
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    with pytest.raises(TextError, match="tensorflow-text"):
        tokenizer.batch_ids(["some text"], "fast")


def test_options_the_fast_path_lacks_are_refused_there(tokenizers):
    tokenizer = Tokenizer(tokenizers["uncased"].vocab, True, strip_accents=False)
    with pytest.raises(TextError, match="exact"):
        tokenizer.batch_ids(["é"], "fast")


@pytest.mark.parametrize("path", ["auto", "exact", "fast"])
def test_bad_texts_are_named_by_number(tokenizer, path):
    with pytest.raises(TextError, match="Text 1.*must be a str, not int"):
        tokenizer.batch_ids(["a", 3], path)
    with pytest.raises(TextError, match=r"Text 2 .*character 0: U\+D801"):
        tokenizer.batch_ids(["a", "[MASK]", "\ud801", "b"], path)
    with pytest.raises(TextError, match="quick"):
        tokenizer.batch_ids(["a"], "quick")


@pytest.mark.parametrize("path", ["auto", "exact", "fast"])
def test_no_texts_give_no_ids(tokenizer, path):
    assert tokenizer.batch_ids([], path) == []
    assert [ids.tolist() for ids in tokenizer.batch_ids(["", " "], path)] == [[], []]
