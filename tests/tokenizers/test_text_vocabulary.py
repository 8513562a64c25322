"""Vocabulary files, good and bad, and tokenizer folders."""

import json

import pytest

from bert_tf.tokenizers import (
    Tokenizer,
    VocabularyError,
    guess_lower_case,
    read_vocabulary,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write(path, lines, end="\n"):
    path.write_bytes(end.join([*lines, ""]).encode("utf-8"))
    return path


def refused(path) -> str:
    with pytest.raises(VocabularyError) as caught:
        Tokenizer(path, lower_case=True)
    message = str(caught.value)
    assert str(path) in message
    return message


def test_missing_special_tokens_are_named(tmp_path):
    message = refused(write(tmp_path / "v.txt", [*SPECIAL[:3], "a"]))
    assert "[SEP], [MASK]" in message and "4 lines" in message


def test_a_repeated_token_is_refused_with_both_lines(tmp_path):
    message = refused(write(tmp_path / "v.txt", [*SPECIAL, "a", "b", "a"]))
    assert "line 8" in message and "line 6" in message and "'a'" in message


@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_a_blank_line_is_a_token_that_no_text_has_as_in_transformers(tmp_path, blank):
    from transformers import BertTokenizer

    path = write(tmp_path / "vocab.txt", [*SPECIAL, blank, "a", "##b"])
    tokenizer, reference = Tokenizer(path, lower_case=True), BertTokenizer.from_pretrained(tmp_path)
    assert tokenizer.vocab == (*SPECIAL, blank, "a", "##b")
    for text in ("a b ab", "", "  ", "a\t b [MASK]"):
        assert tokenizer.tokenize(text).ids.tolist() == reference(text, add_special_tokens=False).input_ids


def test_two_blank_lines_are_one_token_twice(tmp_path):
    assert "line 7: '' is already on line 6" in refused(write(tmp_path / "v.txt", [*SPECIAL, "", "", "a"]))


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path, content):
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    message = refused(path)
    assert "empty" in message or "blank" in message


def test_what_is_not_utf8_is_refused_with_its_line(tmp_path):
    path = tmp_path / "v.txt"
    path.write_bytes(b"\n".join(token.encode() for token in SPECIAL) + b"\ncaf\xe9\n")
    assert "line 6: byte 0xe9 is not UTF-8" in refused(path)


def test_a_carriage_return_inside_a_token_is_refused(tmp_path):
    assert "line 6" in refused(write(tmp_path / "v.txt", [*SPECIAL, "a\rb"]))


def test_windows_line_ends_a_mark_and_a_missing_last_newline_change_nothing(tmp_path):
    tokens = (*SPECIAL, "a", "\u2028", "ü")
    plain = write(tmp_path / "plain.txt", tokens)
    windows = write(tmp_path / "windows.txt", tokens, end="\r\n")
    marked = tmp_path / "marked.txt"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes().removesuffix(b"\n"))
    assert read_vocabulary(plain) == read_vocabulary(windows) == read_vocabulary(marked) == tokens


def test_a_missing_file_is_said_plainly(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.txt"):
        Tokenizer(tmp_path / "nowhere.txt")
    with pytest.raises(FileNotFoundError, match=r"vocab\.txt"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("tokens", [[3], ["a", "a"], ["\ud800"], ["a\nb"]])
def test_a_bad_list_of_tokens_is_refused(tokens):
    with pytest.raises(VocabularyError, match="the vocabulary, line [67]"):
        Tokenizer([*SPECIAL, *tokens])
    with pytest.raises(VocabularyError, match="empty"):
        Tokenizer([])


def test_case_is_guessed_from_the_vocabulary(tokenizers):
    assert guess_lower_case(tokenizers["uncased"].vocab)
    assert not guess_lower_case(tokenizers["cased"].vocab)
    assert Tokenizer([*SPECIAL, "paris"]).lower_case
    assert not Tokenizer([*SPECIAL, "Paris"]).lower_case


@pytest.mark.parametrize("options", [{}, {"strip_accents": False}, {"tokenize_chinese_chars": False}])
def test_a_saved_tokenizer_reads_back_the_same(tmp_path, tokenizers, options):
    for case, tokenizer in tokenizers.items():
        saved = Tokenizer(tokenizer.vocab, tokenizer.lower_case, **options)
        saved.save(tmp_path / case)
        read = Tokenizer.from_folder(tmp_path / case)
        assert (read.vocab, read.lower_case) == (saved.vocab, saved.lower_case)
        assert read.strip_accents == saved.strip_accents
        assert read.tokenize("Café 中国").tokens == saved.tokenize("Café 中国").tokens


def test_transformers_reads_what_we_save_and_we_read_what_it_saves(tmp_path, tokenizer, reference):
    from transformers import BertTokenizer

    text = "Café in Zürich, [MASK] 中国 unaffable"
    tokenizer.save(tmp_path / "ours")
    assert BertTokenizer.from_pretrained(tmp_path / "ours").tokenize(text) == reference.tokenize(text)
    reference.save_pretrained(tmp_path / "theirs")
    read = Tokenizer.from_folder(tmp_path / "theirs")
    assert list(read.tokenize(text).tokens) == reference.tokenize(text)
    assert (read.vocab, read.lower_case) == (tokenizer.vocab, tokenizer.lower_case)


def test_a_tokenizer_json_is_enough(tmp_path, tokenizer, reference):
    reference.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    read = Tokenizer.from_folder(tmp_path)
    assert (read.vocab, read.lower_case) == (tokenizer.vocab, tokenizer.lower_case)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        ('{"model": {"type": "BPE", "vocab": {}}}', "WordPiece"),
        ('{"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 2}}}', "do not run from 0"),
        ('{"model": {"type": "WordPiece", "vocab": {"a": 0, "b": "x"}}}', "the id of 'b' is 'x'"),
        ('{"model": {"type": "WordPiece", "vocab": {"a": 0}}, "normalizer": [1]}', "normalizer is \\[1\\]"),
        ('{"model": {"type": "WordPiece", "vocab": {"a": 0}}, "pre_tokenizer": 3}', "pre_tokenizer is 3"),
        ('{"model": {"type": "WordPiece", "vocab": {"a": 0}}, "added_tokens": {"b": 1}}', "no list of objects"),
        ('{"model": {"type": "WordPiece", "vocab": {"a": 0}}, "added_tokens": [{"id": 1}]}', "the token None"),
        ('{"model": {"type": "WordPiece", "vocab": {"a": 0}}, "added_tokens": [{"id": [], "content": "b"}]}', "id"),
    ],
)
def test_a_bad_tokenizer_json_is_refused(tmp_path, content, complaint):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(VocabularyError, match=complaint):
        Tokenizer.from_folder(tmp_path)


def test_a_bad_config_is_refused(tmp_path):
    write(tmp_path / "vocab.txt", SPECIAL)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": "yes"}))
    with pytest.raises(VocabularyError, match="do_lower_case is 'yes'"):
        Tokenizer.from_folder(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": ["<new>"]}))
    with pytest.raises(VocabularyError, match=r"added_tokens_decoder is \['<new>'\]"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("unknown", ["<unk>", None, ["[UNK]"]])
def test_a_tokenizer_json_without_its_unknown_token_is_refused(tmp_path, unknown):
    vocabulary = {token: index for index, token in enumerate(SPECIAL)}
    model = {"type": "WordPiece", "vocab": vocabulary, "unk_token": unknown}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}))
    with pytest.raises(VocabularyError, match="tokenizer.json: unk_token .* is no token of the vocabulary"):
        Tokenizer.from_folder(tmp_path)
