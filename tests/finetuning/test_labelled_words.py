"""Files of labelled words: formats, label schemes, and what is wrong with a line."""

import pytest

from bert_tf.errors import DataError
from bert_tf.finetuning.data.labelled_sentences import read_labelled_words, words_of_text
from bert_tf.finetuning.data.word_splitter import word_spans
from bert_tf.finetuning.labels import (
    entities,
    is_entity_scheme,
    label_list,
    to_bio,
)


def test_a_mistyped_label_among_those_of_entities_is_named(tmp_path):
    path = tmp_path / "names.conll"
    path.write_text("Ann B-PER\nran O\n\nEve X-PER\n\nin O\nRome B-LOC\n")
    with pytest.raises(DataError, match="names.conll, line 4.*'X-PER' marks no entity"):
        list(read_labelled_words(path))
    path.write_text("Ann NOUN\nran VERB\n\nO O\nx B-PER\n")
    assert [sentence.labels for sentence in read_labelled_words(path)] == [("NOUN", "VERB"), ("O", "B-PER")]


BIO = "B-PER I-PER B-PER O B-LOC I-LOC I-LOC O B-PER B-LOC".split()


@pytest.mark.parametrize(
    "scheme",
    [
        BIO,
        "B-PER E-PER S-PER O B-LOC I-LOC E-LOC O S-PER S-LOC".split(),
        "B-PER L-PER U-PER O B-LOC I-LOC L-LOC O U-PER U-LOC".split(),
        "I-PER I-PER B-PER O I-LOC I-LOC I-LOC O I-PER I-LOC".split(),
    ],
    ids=["BIO", "BIOES", "BILOU", "IOB1"],
)
def test_every_scheme_is_read_into_bio(scheme):
    assert is_entity_scheme(scheme)
    assert to_bio(scheme) == BIO
    assert entities(scheme) == [("PER", 0, 2), ("PER", 2, 3), ("LOC", 4, 7), ("PER", 8, 9), ("LOC", 9, 10)]


def test_entities_are_those_seqeval_finds_also_in_faulty_sequences():
    from seqeval.metrics.sequence_labeling import get_entities

    for labels in (BIO, ["I-A", "I-B", "O", "I-B"], ["B-A", "I-B", "I-B"], ["O"], ["B-A", "B-A", "I-A"]):
        assert entities(labels) == [(kind, first, last + 1) for kind, first, last in get_entities(labels)]


def test_tags_without_prefixes_are_no_entities():
    assert not is_entity_scheme(["NOUN", "O", "X"])
    assert not is_entity_scheme(["O"])
    assert label_list([["VERB", "NOUN"], ["NOUN"]]) == ("NOUN", "VERB")
    assert label_list([["B-LOC"], ["O", "B-ART"]]) == ("O", "B-ART", "I-ART", "B-LOC", "I-LOC")


@pytest.mark.parametrize(
    "content",
    [
        "EU\tB-ORG\nrejects\tO\n\nPeter\tB-PER\nBlackburn\tI-PER\n",
        "\ufeffEU\tB-ORG\r\nrejects\tO\r\n\t\r\nPeter\tB-PER\r\nBlackburn\tI-PER",
        "-DOCSTART- -X- O O\n\nEU NNP I-NP S-ORG\nrejects VBZ I-VP O\n\nPeter NNP I-NP B-PER\n"
        "Blackburn NNP I-NP E-PER\n",
        "EU NNP I-ORG\nrejects VBZ O\n\n\nPeter NNP I-PER\nBlackburn NNP I-PER\n\n",
    ],
    ids=["tabs", "BOM and CRLF", "four columns, BIOES", "three columns, IOB1"],
)
def test_conll_columns(tmp_path, content):
    path = tmp_path / "train.conll"
    path.write_bytes(content.encode())
    first, second = read_labelled_words(path)
    assert first.words == ("EU", "rejects") and first.labels == ("B-ORG", "O")
    assert second.words == ("Peter", "Blackburn") and second.labels == ("B-PER", "I-PER")
    assert second.text == "Peter Blackburn" and second.spans == ((0, 5), (6, 15))


def test_a_no_break_space_is_part_of_a_word(tmp_path):
    path = tmp_path / "train.conll"
    path.write_text("10\xa0000 O\nParis  B-LOC \r\n", newline="")
    (sentence,) = read_labelled_words(path)
    assert sentence.words == ("10\xa0000", "Paris") and sentence.labels == ("O", "B-LOC")


def test_another_label_column(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("EU NNP I-ORG\n")
    assert read_labelled_words(path, column=2)[0].labels == ("NNP",)


def test_conllu_and_json_lines(tmp_path):
    rows = [
        "# text = don't",
        "1-2\tdon't\t_" + "\t_" * 7,
        "1\tdo\tdo\tAUX\tVBP" + "\t_" * 5,
        "2\tn't\tnot\tPART\tRB" + "\t_" * 5,
    ]
    (tmp_path / "a.conllu").write_text("\n".join(rows))
    assert [one.labels for one in read_labelled_words(tmp_path / "a.conllu")] == [("AUX", "PART")]
    assert read_labelled_words(tmp_path / "a.conllu", column="xpos")[0].labels == ("VBP", "RB")
    (tmp_path / "a.jsonl").write_text('{"tokens": ["do", "n\'t"], "tags": ["AUX", "PART"]}\n')
    (actual,) = read_labelled_words(tmp_path / "a.jsonl", words_field="tokens", labels_field="tags")
    assert actual.words == ("do", "n't") and actual.labels == ("AUX", "PART")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.conll", "", "holds no sentence"),
        ("a.conll", "EU B-ORG\nrejects\n", r"a\.conll, line 2: 1 columns"),
        ("a.conll", "EU\n", r"line 1: 1 columns; a word and its label make 2"),
        ("a.conll", "a b c d e\n", "line 1: 5 columns"),
        ("a.conll", "EU\t\n", "line 1: the label is empty"),
        ("a.conllu", "1\tEU\n", "a.conllu: Line 1 has 2 fields"),
        ("a.conllu", "1\tEU\t_\t_" + "\t_" * 6, "line 1: the column upos is empty"),
        ("a.jsonl", '{"words": ["a"], "labels": []}', "line 1: 1 words, but 0 labels"),
        ("a.jsonl", '\n{"words": ["a"]}', "line 2: no 'labels' \\(found: words\\)"),
        ("a.jsonl", '{"words": "a b", "labels": []}', "line 1: 'words' must be a list of strings"),
        ("a.jsonl", "[1]", "line 1: a JSON array; write one object per line"),
        ("a.jsonl", "{", "line 1: not JSON"),
        ("a.jsonl", '\n{"words": ["a\\ud800"], "labels": ["O"]}', "line 2: it holds half of a surrogate pair"),
    ],
)
def test_bad_rows_are_named_by_file_and_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_labelled_words(tmp_path / name)


def test_bytes_that_are_no_utf8_are_named(tmp_path):
    (tmp_path / "a.conll").write_bytes(b"EU B-ORG\ncaf\xe9 O\n")
    with pytest.raises(DataError, match="line 2: not UTF-8"):
        read_labelled_words(tmp_path / "a.conll")


def test_a_file_without_labels_is_read_where_none_are_wanted(tmp_path):
    (tmp_path / "a.txt").write_text("EU\nrejects\n")
    (actual,) = read_labelled_words(tmp_path / "a.txt", labelled=False)
    assert actual.words == ("EU", "rejects") and actual.labels is None
    (tmp_path / "a.conllu").write_text("1\tEU" + "\t_" * 8)
    assert read_labelled_words(tmp_path / "a.conllu", labelled=False)[0].words == ("EU",)


def test_words_of_running_text():
    text = "I don't think it's 3.14; see https://a.b/c?d=1. @me won’t (x@y.com)"
    assert [text[start:end] for start, end in word_spans(text)] == [
        "I",
        "do",
        "n't",
        "think",
        "it",
        "'s",
        "3.14",
        ";",
        "see",
        "https://a.b/c?d=1",
        ".",
        "@me",
        "wo",
        "n’t",
        "(",
        "x@y.com",
        ")",
    ]
    for words in (
        ["हिन्दी", "भाषा", "।"],
        ["cafe\u0301", "noir"],
        ["السَّلامُ", "عليكم"],
        ["می\u200cخواهم", "بروم"],
        ["#हिन्दी", "❤\ufe0f", "!"],
    ):
        assert list(words_of_text(" ".join(words)).words) == words
    assert words_of_text(" a  b").spans == ((1, 2), (4, 5))
    assert len(word_spans("x" * 300)) == 1 and len(word_spans("-" * 20_000)) == 20_000
