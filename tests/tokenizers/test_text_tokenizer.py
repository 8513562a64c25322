"""Tokens, offsets and word ids of single texts."""

import copy
import random
import subprocess
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert_tf.tokenizers import TextError, Tokenizer

WORDS_TEXT = """the of and Shanghai Zürich naïve coöperate don't rock'n'roll self-evident 3.14 1,000 e.g. U.S.A.
[MASK] [SEP] [mask] 東京 上海市 한국어 Ελλάδα Москва שלום مرحبا हिन्दी ภาษา 😀 👍🏽 ❤️ café cafe\u0301 ½ ﬁ ß İ
unaffable unbelievableness xylophonist “quoted” —dash– … a\u200bb c\u00add \u00a0 \t x² 50% a*b <tag> {x} \\
http://example.org/a?b=c#d @user #tag $5 tokenization pre-training Donaudampfschifffahrtsgesellschaft
antidisestablishmentarianism \u0007 \ufeff \ufffd ##ing"""
# Not split(): the odd spaces are words here.
WORDS = WORDS_TEXT.replace("\n", " ").split(" ")


def made_lines(count: int) -> list[str]:
    """Lines of words of many scripts in random order, the same every time."""
    rng = random.Random(7)
    gaps = ("", " ", "  ")
    return [gaps[number % 3].join(rng.choices(WORDS, k=rng.randint(1, 30))) for number in range(count)]


def is_offset_of(text: str, ours: tuple[int, int], theirs: tuple[int, int]) -> bool:
    """Equal, or longer by combining marks only."""
    marks = text[theirs[1] : ours[1]]
    return ours[0] == theirs[0] and ours[1] >= theirs[1] and all(unicodedata.category(mark) == "Mn" for mark in marks)


def test_hard_strings_equal_transformers_golden_results(tokenizer, case, golden):
    for text, expected in zip(golden["texts"], golden[case]["texts"], strict=True):
        tokens = tokenizer.tokenize(text)
        assert tokens.ids.tolist() == expected["ids"], text
        assert list(tokens.word_ids) == expected["words"], text
        pairs = zip(tokens.offsets, expected["offsets"], strict=True)
        assert all(is_offset_of(text, ours, tuple(theirs)) for ours, theirs in pairs), text


def test_five_hundred_made_lines_equal_transformers(tokenizer, reference):
    for text in made_lines(500):
        tokens = tokenizer.tokenize(text)
        expected = reference(text, add_special_tokens=False, return_offsets_mapping=True)
        assert list(tokens.tokens) == reference.tokenize(text)
        assert tokens.ids.tolist() == expected.input_ids
        assert list(tokens.word_ids) == expected.word_ids()
        pairs = zip(tokens.offsets, expected.offset_mapping, strict=True)
        assert all(is_offset_of(text, ours, tuple(theirs)) for ours, theirs in pairs)


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_equals_transformers(tokenizers, reference_tokenizers, text):
    for case, tokenizer in tokenizers.items():
        assert list(tokenizer.tokenize(text).tokens) == reference_tokenizers[case].tokenize(text)


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=60) | st.text(alphabet="aé e\u0301ßİ한中[MASK]##'-\u200b😀\u0000ﬁ", max_size=40))
def test_offsets_stay_in_order_and_in_the_text_and_words_are_counted(tokenizers, text):
    for tokenizer in tokenizers.values():
        tokens = tokenizer.tokenize(text)
        assert len(tokens) == len(tokens.ids) == len(tokens.offsets) == len(tokens.word_ids)
        last_start, last_word, last_word_end = 0, -1, 0
        for (start, end), word in zip(tokens.offsets, tokens.word_ids, strict=True):
            assert last_start <= start < end <= len(text)
            assert word - last_word in (0, 1)
            if word != last_word:
                assert start >= last_word_end, "words do not overlap"
            last_start, last_word, last_word_end = start, word, end


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=60))
def test_in_ascii_text_the_pieces_are_the_text(tokenizers, text):
    tokens = tokenizers["cased"].tokenize(text)
    for token, (start, end) in zip(tokens.tokens, tokens.offsets, strict=True):
        assert token == "[UNK]" or token.removeprefix("##" if len(token) > 2 else "") == text[start:end]


def test_offsets_count_characters_of_the_users_own_text(tokenizers):
    text = "Ünïcödé 😀 straße, cafe\u0301s and e\u0301\u0302\u200b 한 İİx"
    tokens = tokenizers["uncased"].tokenize(text)
    spans = [text[start:end] for start, end in tokens.offsets]
    words = {}
    for word, span in zip(tokens.word_ids, tokens.offsets, strict=True):
        start, _ = words.setdefault(word, span)
        words[word] = (start, span[1])
    assert [text[start:end] for start, end in words.values()] == [
        "Ünïcödé",
        "😀",
        "straße",
        ",",
        "cafe\u0301s",
        "and",
        "e\u0301\u0302",
        "한",
        "İİx",
    ]
    assert spans.count("한") == 3, "the pieces of one syllable share it"


def test_word_ids_are_what_a_person_would_click_on(tokenizers):
    tokens = tokenizers["uncased"].tokenize("The unaffable[MASK] man's 中国")
    assert tokens.tokens == ("the", "una", "##ffa", "##ble", "[MASK]", "man", "'", "s", "中", "国")
    assert tokens.word_ids == (0, 1, 1, 1, 2, 3, 4, 5, 6, 7)


def test_typed_special_tokens_become_the_special_tokens_in_that_spelling_only(tokenizer):
    ids = tokenizer.tokenize("[CLS] [SEP] [PAD] [UNK] [MASK]").ids.tolist()
    assert ids == [tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id, tokenizer.unk_id, tokenizer.mask_id]
    assert tokenizer.mask_id not in tokenizer.tokenize("[mask] [Mask] [ MASK ] (MASK)").ids


def test_ids_are_those_of_the_released_models(tokenizers):
    cased, uncased = tokenizers["cased"], tokenizers["uncased"]
    assert (cased.vocab_size, uncased.vocab_size) == (28996, 30522)
    assert (cased.lower_case, uncased.lower_case) == (False, True)
    for tokenizer in (cased, uncased):
        special = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
        assert special == (0, 100, 101, 102, 103)
        assert tokenizer.special_ids == set(special)
    assert uncased.tokenize("Hello, world!").ids.tolist() == [7592, 1010, 2088, 999]
    assert cased.tokenize("Hello, world!").ids.tolist() == [8667, 117, 1362, 106]


def test_token_and_id_lookup(tokenizer):
    assert tokenizer.id_to_token(tokenizer.token_to_id("city")) == "city"
    assert tokenizer.token_to_id("no such token") == tokenizer.unk_id
    assert "city" in tokenizer and "no such token" not in tokenizer
    for wrong in (-1, tokenizer.vocab_size):
        with pytest.raises(TextError, match=str(wrong)):
            tokenizer.id_to_token(wrong)


def test_decode_equals_transformers(tokenizer, reference, golden):
    for text in golden["texts"]:
        ids = tokenizer.encode(text).token_ids
        assert tokenizer.decode(ids) == reference.decode(ids.tolist())
        without = reference.decode(ids.tolist(), skip_special_tokens=True)
        assert tokenizer.decode(ids, skip_special_tokens=True) == without
    with pytest.raises(TextError, match="99999"):
        tokenizer.decode([99999])


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["a"], np.str_])
def test_what_is_no_text_is_refused(tokenizer, value):
    with pytest.raises(TextError, match="must be a str"):
        tokenizer.tokenize(value)


def test_half_a_surrogate_pair_is_refused_with_its_place(tokenizer):
    with pytest.raises(TextError, match=r"character 3: U\+D800"):
        tokenizer.tokenize("abc\ud800")
    with pytest.raises(TextError, match=r"character 0: U\+DFFF"):
        tokenizer.encode("fine", "\udfff")


def test_a_megabyte_in_one_text_is_well(tokenizer):
    assert len(tokenizer.tokenize("word " * 200_000)) == 200_000
    assert tokenizer.tokenize("x" * 1_000_000).tokens == ("[UNK]",)


def test_results_cannot_be_changed(tokenizer):
    with pytest.raises(AttributeError):
        tokenizer.tokenize("a").tokens = ()


def test_a_copy_for_another_process_is_the_same(tokenizer):
    copied = copy.deepcopy(tokenizer)
    assert copied is not tokenizer
    assert (copied.vocab, copied.lower_case) == (tokenizer.vocab, tokenizer.lower_case)
    assert copied.tokenize("Zürich").tokens == tokenizer.tokenize("Zürich").tokens


def test_several_threads_at_once_are_well(tokenizer, golden):
    texts = golden["texts"] * 5
    expected = [tokenizer.tokenize(text).ids.tolist() for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert [tokens.ids.tolist() for tokens in pool.map(tokenizer.tokenize, texts)] == expected


def test_strip_accents_and_chinese_options_equal_transformers(tokenizers):
    from transformers import BertTokenizer

    vocab = tokenizers["uncased"].vocab
    ids = {token: index for index, token in enumerate(vocab)}
    for options in ({"strip_accents": False}, {"strip_accents": True}, {"tokenize_chinese_chars": False}):
        for lower_case in (True, False):
            ours = Tokenizer(vocab, lower_case, **options)
            theirs = BertTokenizer(vocab=ids, do_lower_case=lower_case, **options)
            for text in ("Café cafe\u0301 中国人 naïve", "Zürich ÉTÉ"):
                assert list(ours.tokenize(text).tokens) == theirs.tokenize(text)
                assert ours.batch_ids([text])[0].tolist() == ours.tokenize(text).ids.tolist()


def test_importing_the_package_does_not_import_tensorflow():
    heavy = {"tensorflow", "tensorflow_text", "keras", "torch", "transformers", "streamlit"}
    code = f"import sys, bert_tf.tokenizers; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
