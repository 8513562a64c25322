"""Reading small files of texts, and which of their words are hidden."""

import io
import json
import time

import pytest

from bert_tf.errors import InputError
from bert_tf.explain import ConlluError, file_kind, read_rows
from bert_tf.explain.datasets.text_rows import TextRow, hidden_words, labelled, labels_of, texts_of_file
from bert_tf.explain.representations.word_senses import lines_of_file
from bert_tf.finetuning.data.tables import records_or_errors
from bert_tf.inference.words import Word


def texts(actual):
    return [(row.number, row.text_a, row.text_b) for row in actual.rows]


def test_a_line_is_a_text_and_a_tab_begins_the_second():
    actual = read_rows("one\n\n two\tthree \n")
    assert texts(actual) == [(1, "one", None), (3, " two", "three ")]


@pytest.mark.parametrize("inside", ["\x0c", "\x1c", "\x85", "\u2028"])
def test_a_line_ends_where_an_editor_ends_it(inside, tmp_path):
    data = f"one{inside}two\tthree\r\nfour\rfive\n"
    assert texts(read_rows(data)) == [(1, f"one{inside}two", "three"), (2, "four", None), (3, "five", None)]
    path = tmp_path / "lines.txt"
    path.write_bytes(data.encode())
    assert lines_of_file(str(path))[:3] == (f"one{inside}two\tthree", "four", "five")


def test_json_lines_name_texts_and_masks_and_bad_lines_are_told():
    good = '{"text": "a b", "mask": "b"}', '{"text": "c", "text_b": "d", "mask": ["c", 2]}'
    data = "\n".join([good[0], "not json", "[1]", good[1], '{"text": 5}'])
    actual = read_rows(data.encode(), "jsonl")
    assert texts(actual) == [(1, "a b", None), (4, "c", "d")]
    assert [row.mask for row in actual.rows] == [("b",), ("c", 2)]
    assert [number for number, _ in actual.problems] == [2, 3, 5]
    assert "not JSON" in actual.problems[0][1] and "list" in actual.problems[1][1]


def test_a_string_with_another_line_end_inside_stays_one_json_line():
    assert texts(read_rows('{"text": "a\u2028b"}', "jsonl")) == [(1, "a\u2028b", None)]


def test_sentences_of_conllu_are_rows_with_their_trees():
    the, cats = "1\tThe\t_\tDET\t_\t_\t2\tdet\t_\t_", "2\tcats\t_\tNOUN\t_\t_\t0\troot\t_\t_"
    joined, other = "2-3\tcats.\t" + "\t".join("_" * 8), "3\ta\u2028b\t_\tX\t_\t_\t2\tdep\t_\t_"
    first = ["# text = The cats.", the, joined, cats, other, "", "", "# none", ""]
    data = "\r\n".join([*first, the, cats.replace("cats", "c" * 50), "", the.replace("\t2\t", "\t0\t")])
    assert file_kind("x.CoNLLU") == "conllu"
    actual = read_rows(data.encode("utf-8-sig"), "conllu", max_characters=20)
    assert texts(actual) == [(1, "The cats a\u2028b", None), (3, "The", None)]
    assert (actual.rows[0].parsed.tags, actual.rows[0].parsed.heads) == (("DET", "NOUN", "X"), (2, 0, 2))
    assert actual.problems == ((2, "It has 54 characters; at most 20 of a text are read."),)
    assert read_rows(data, "conllu", most_rows=1).left_out == 2 and read_rows("The cats").rows[0].parsed is None
    with pytest.raises(ConlluError, match="Line 1 has 2 fields"):
        read_rows("a\tb", "conllu")
    with pytest.raises(InputError, match="no sentence in the file. CoNLL-U has ten"):
        read_rows("# nothing\n", "conllu")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_are_read_by_the_delimiter_of_their_header(delimiter):
    data = delimiter.join(["id", "sentence1", "sentence2"]) + "\r\n" + delimiter.join(["1", '"a, b"', "c"]) + "\r\n"
    actual = read_rows(data, "table")
    assert texts(actual) == [(1, "a, b", "c")]
    assert (actual.first, actual.second, actual.columns) == (
        "sentence1",
        "sentence2",
        ("id", "sentence1", "sentence2"),
    )


def test_a_quote_in_tsv_is_a_character_as_in_training(tmp_path):
    quoted = ('" it is a huge black eye , " said the publisher .\t1', '"good" film\t1', '" unclosed quote here\t0')
    path = tmp_path / "dev.tsv"
    path.write_bytes("\r\n".join(["sentence\tlabel", *quoted[:2], "", quoted[2], "one value", ""]).encode("utf-8-sig"))
    actual = read_rows(path.read_bytes(), file_kind(path.name))
    rows = [record for _, record in records_or_errors(path) if isinstance(record, dict)]
    assert [(row.text_a, row.label) for row in actual.rows] == [(row["sentence"], row["label"]) for row in rows]
    assert [f"{row.text_a}\t{row.label}" for row in actual.rows] == list(quoted)
    assert actual.unit == "record" and [number for number, _ in actual.problems] == [4]


def test_columns_can_be_chosen_and_the_second_left_away():
    data = "x,text,text_b\n1,2,3\n"
    assert texts(read_rows(data, "table", "x", "text")) == [(1, "1", "2")]
    assert texts(read_rows(data, "table", second="")) == [(1, "2", None)]
    with pytest.raises(InputError, match="no column 'y'.* x, text, text_b"):
        read_rows(data, "table", "y")


def test_rows_and_characters_are_bounded():
    actual = read_rows("a\nb\nc\n" + "d" * 50, most_rows=2, max_characters=20)
    assert len(actual.rows) == 2 and actual.left_out == 1
    assert actual.problems == ((4, "It has 50 characters; at most 20 of a text are read."),)


@pytest.mark.parametrize(
    "data, kind, says",
    [
        (b"\xff\xfe", "text", "UTF-8"),
        (b"", "text", "no text"),
        (b"[1]\n", "jsonl", "Line 1: A JSON object"),
        (b"a,b\n", "table", "no text"),
        (b"x", "pdf", "kind"),
    ],
)
def test_a_file_without_texts_is_refused_with_a_sentence(data, kind, says):
    with pytest.raises(InputError, match=says):
        read_rows(data, kind)


def test_the_kind_follows_from_the_name():
    kinds = {"a.CSV": "table", "b.tsv": "tsv", "c.jsonl": "jsonl", "d.txt": "text", "e": "text"}
    kinds |= {"f.json": "jsonl", "g.ndjson": "jsonl", "h.tab": "tsv"}
    assert {name: file_kind(name) for name in kinds} == kinds


def test_one_word_of_a_row_is_hidden_always_the_same_and_never_a_comma(tiny_bert):
    row = TextRow(3, "the cat, sat !")
    encoding = tiny_bert.tokenizer.encode(row.text_a)
    first = hidden_words(row, encoding, "random")
    assert first == hidden_words(row, encoding, "random") and first[0].index in (0, 1, 3)
    assert hidden_words(row, encoding, "last") == (Word("a", 3),)
    assert hidden_words(row, encoding, "given") == ()
    assert {hidden_words(TextRow(n, row.text_a), encoding)[0].index for n in range(30)} == {0, 1, 3}


def test_words_with_vowel_signs_accents_and_joiners_are_hidden(tiny_bert):
    row = TextRow(1, "हिन्दी cafe\u0301 می\u200cخواهم 1998 ! ,")
    encoding = tiny_bert.tokenizer.encode(row.text_a)
    assert {hidden_words(TextRow(n, row.text_a), encoding)[0].index for n in range(30)} == {0, 1, 2}


def test_what_a_row_hides_itself_is_left_as_it_is(tiny_bert):
    typed, named = TextRow(1, "the [MASK] sat"), TextRow(2, "the cat", None, ("cat",))
    for row, wanted in ((typed, ()), (named, ("cat",))):
        assert hidden_words(row, tiny_bert.tokenizer.encode(row.text_a), "last") == wanted
    for row in (TextRow(1, "the <mask> sat"), TextRow(1, "the cat", "it <mask>")):
        encoding = tiny_bert.tokenizer.encode(row.text_a, row.text_b)
        assert hidden_words(row, encoding, "last") != () == hidden_words(row, encoding, "last", mask_tokens=("<mask>",))
    with pytest.raises(InputError, match="given, random, last"):
        hidden_words(named, tiny_bert.tokenizer.encode("a"), "every")


def test_a_label_is_read_from_tables_and_json_lines():
    table = read_rows("text,Label\na, good \nb,\n", "table")
    assert [row.label for row in table.rows] == ["good", ""]
    cells = '["x", "y"]', "[]", "null", '" "', "{}", "1", "1.0", "0.5", '"1.0"', "[1.0, 2]", "true", "NaN", "-Infinity"
    lines = [*(f'{{"text": "a", "label": {cell}}}' for cell in cells), '{"text": "a"}']
    expected = ["x|y", "", "", "", None, "1", "1", "0.5", "1.0", "1|2", "True", None, None, None]
    assert [row.label for row in read_rows("\n".join(lines), "jsonl").rows] == expected
    assert read_rows("a\tgood\n").rows[0].label is None
    assert read_rows("label,review\ngood,a b\n", "table").first == "review"
    assert texts(read_rows("label\ngood\n", "table")) == [(1, "good", None)]


def test_the_columns_that_fine_tuning_reads_are_read_here_too():
    for header in ("text,text2,label", "text, text2 , label"):
        pair = read_rows(f"{header}\na,b,x\n", "table")
        assert texts(pair) == [(1, "a", "b")] and pair.rows[0].label == "x"
    assert read_rows("text,score\na,0.5\n", "table").rows[0].label == "0.5"
    assert read_rows("text,score,label\na,0.5,x\n", "table").rows[0].label == "x"


def test_each_row_that_cannot_be_read_is_told():
    lines = ['{"text": "a"}', "no", '{"foo": 1}', '{"text": 7}', '{"text": " "}', '{"text": null}']
    actual = read_rows("\n".join(lines), "jsonl")
    assert texts(actual) == [(1, "a", None)]
    assert actual.problems == (
        (2, "This is not JSON."),
        (3, "It has no 'text' (it has: foo)."),
        (4, "Its text is not a string but 7."),
        (5, "Its first text is empty."),
        (6, "Its first text is empty."),
    )
    actual = read_rows("text,label\na,x\n,x\nb\nc,x,y\n", "table")
    assert [row.text_a for row in actual.rows] == ["a"]
    assert actual.problems == (
        (2, "Its first text is empty."),
        (3, "It has 1 values, where the header names 2 columns."),
        (4, "It has 3 values, where the header names 2 columns."),
    )
    with pytest.raises(InputError, match="Two columns are named 'text'"):
        read_rows("text,text\na,b\n", "table")


def test_sentences_without_tags_or_heads_are_read_and_counted_as_sentences():
    line = "\t".join(["{}", "{}", "_", "{}", "_", "_", "{}", "_", "_", "_"])
    long = line.format(1, "x" * 40, "NOUN", "0")
    data = f"{long}\n\n{line.format(1, 'cats', '_', '_')}\n{line.format(2, 'sat', '_', '_')}\n"
    actual = read_rows(data, "conllu", max_characters=20)
    assert [row.text_a for row in actual.rows] == ["cats sat"] and actual.rows[0].parsed.heads == (0, 0)
    assert actual.unit == "sentence" and [number for number, _ in actual.problems] == [1]
    assert read_rows("a,b\nx,y\n", "table").unit == "record"


def test_rows_of_one_label_alone():
    rows = read_rows("text,label\na,x\nb,y|x\nc,\nd,z\n", "table").rows
    assert labels_of(rows) == ("x", "y", "z")
    assert [row.text_a for row in labelled(rows, "x")] == ["a", "b"]
    with pytest.raises(InputError, match="No row of the file is labelled 'w': its labels are x, y, z."):
        labelled(rows, "w")
    with pytest.raises(InputError, match="it has no labels"):
        labelled(read_rows("a\nb").rows, "x")


def test_spaces_around_the_labels_of_a_row_do_not_count():
    rows = read_rows("text,label\na,one | two\nb, two\n", "table").rows
    assert labels_of(rows) == ("one", "two") and len(labelled(rows, "two")) == 2


def test_all_texts_of_a_file_are_read_or_the_bad_one_is_named(tmp_path):
    path = tmp_path / "many.txt"
    path.write_text("text\n" * 1499 + "x" * 3000)
    actual = texts_of_file(str(path))
    assert len(actual) == 1500 and len(actual[-1]) == 3000
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "a"}\nnonsense\n')
    with pytest.raises(InputError, match="bad.jsonl, line 2: "):
        texts_of_file(str(path))
    with pytest.raises(InputError, match="bad.jsonl is read as a sentence on each line: write its sentences to a .txt"):
        lines_of_file(str(path))


@pytest.mark.parametrize("broken", ['{"text": "a \\ud83d"}', '{"text": "b", "label": "\\udc00"}', '{"\\ud800": "c"}'])
def test_a_row_with_half_a_surrogate_pair_is_named_and_passed_over(broken):
    rows = read_rows('{"text": "whole \\ud83d\\ude00"}\n' + broken, "jsonl")
    assert [row.text_a for row in rows.rows] == ["whole \U0001f600"]
    assert [number for number, _ in rows.problems] == [2] and "half of a surrogate pair" in rows.problems[0][1]
    " ".join(rows.columns).encode("utf-8")


def test_a_table_of_very_many_columns_is_refused_at_once():
    header = ",".join(f"c{number}" for number in range(90_000))
    begun = time.process_time()
    with pytest.raises(InputError, match="90,000 columns; at most 1,000 are read"):
        read_rows(header + "\n" + "a,b\n" * 1000, "table")
    assert time.process_time() - begun < 5
    with pytest.raises(InputError, match="1,001 columns"):
        read_rows(json.dumps({f"c{number}": "a" for number in range(1001)}), "jsonl")
    widest = ",".join(f"c{number}" for number in range(1000))
    assert len(read_rows(f"{widest}\n{widest}", "table").columns) == 1000


def test_a_quote_that_is_never_closed_leaves_out_its_line_alone():
    table = 'text,label\nGood film.,good\n"Not closed,bad\nLong film.,good\n"Two\nlines.",bad\nShort film.,bad\n'
    actual = read_rows(table, "table")
    assert [row.text_a for row in actual.rows] == ["Good film.", "Long film.", "Two\nlines.", "Short film."]
    assert [row.label for row in actual.rows] == ["good", "good", "bad", "bad"]
    ((number, why),) = actual.problems
    assert number == 2 and why == 'A quote in it is not closed: "Not closed,bad'
    closed = read_rows('text\nOne.\n"Two\nlines."\n', "table")
    assert not closed.problems and closed.rows[1].text_a == "Two\nlines."


def test_a_file_of_quotes_that_are_not_closed_is_not_read_again_and_again():
    table = "text,label,note\n" + 'A film",bad,"not closed\n' * 20_000
    begun = time.process_time()
    with pytest.raises(InputError, match="Many quotes up to line .* of the file are not closed: close them, or save"):
        read_rows(table, "table")
    assert time.process_time() - begun < 30


@pytest.mark.parametrize("data", [("one", "two"), ["one"], None, 3, io.StringIO("one")])
def test_what_is_no_text_of_a_file(data):
    with pytest.raises(
        InputError, match="data must be the text or the bytes of a file, not .*: join lines to one text"
    ):
        read_rows(data)
