"""Files of sentences: their forms, and what is said of a file that cannot be used."""

import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.class_weights import class_weights
from bert_tf.finetuning.data.labelled_sentences import LabelledSentence
from bert_tf.finetuning.data.sentence_examples import (
    ColumnLayout,
    SentenceExample,
    glue_layout,
    read_sentences,
)
from bert_tf.finetuning.data.tables import records_or_errors
from bert_tf.finetuning.task_settings import TaskSettings, read_settings
from bert_tf.finetuning.tasks.sequence_classification import TASK, targets


def read(path, kind=None, **layout):
    return [(one.text_a, one.text_b, one.target) for one in read_sentences(path, ColumnLayout(**layout), kind)]


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def options(**changes):
    base = {
        "glue": None,
        "format": None,
        "columns": None,
        "text_column": None,
        "text2_column": None,
        "label_column": None,
        "label_separator": "|",
        "multi_label": False,
        "regression": False,
        "pooling": "cls",
        "length": 32,
        "metric": None,
        "class_weights": None,
    }
    return SimpleNamespace(**{**base, **changes})


def test_csv_with_byte_order_mark_crlf_quotes_and_line_breaks(tmp_path):
    path = write(tmp_path, "a.csv", '\ufefftext,label\r\n"a ""b"", c",x\r\n"two\r\nlines",y\r\n')
    assert read(path) == [('a "b", c', None, "x"), ("two\r\nlines", None, "y")]


def test_in_tsv_a_quote_is_a_character(tmp_path):
    path = write(tmp_path, "a.tsv", b'sentence\tlabel\r\n"open quote\t1\r\nsay "hi" \t0\r\n')
    assert read(path) == [('"open quote', None, "1"), ('say "hi" ', None, "0")]


def test_json_lines_with_several_labels_as_a_list_and_columns_by_name(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"body": "a", "tags": ["x", "y"]}\n\n{"body": "b", "tags": []}\n')
    assert read(path, text="body", label="tags", multi_label=True) == [
        ("a", None, ("x", "y")),
        ("b", None, ()),
    ]


def test_equal_numbers_of_json_are_one_label(tmp_path):
    labels = ["1", "1.0", '"1"', '"1.0"', '"nan"', '" yes "', "2.5"]
    path = write(tmp_path, "a.jsonl", "".join(f'{{"text": "a", "label": {label}}}\n' for label in labels))
    assert [target for _, _, target in read(path)] == ["1", "1", "1", "1.0", "nan", "yes", "2.5"]
    path = write(tmp_path, "b.jsonl", '{"text": "a", "label": true}\n{"text": "a", "label": false}\n')
    assert [target for _, _, target in read(path)] == ["True", "False"]


@pytest.mark.parametrize(
    "first, second, sentence",
    [
        ("1", "true", "line 2: the label is the boolean true, and .*a.jsonl line 1 has a number: give all labels"),
        ("false", "0.0", "line 2: the label is the number 0.0, and .*a.jsonl line 1 has a boolean: give all labels"),
        ('["a", 1]', "[true]", "line 2: the label is the boolean true"),
        ("1", "NaN", r"line 2: label holds no label \(nan\)"),
        ("1", "Infinity", r"line 2: label holds no label \(inf\)"),
        ("1", "null", r"line 2: label holds no label \(None\)"),
    ],
)
def test_labels_that_are_mixed_or_no_labels_are_refused(first, second, sentence, tmp_path):
    path = write(tmp_path, "a.jsonl", f'{{"text": "a", "label": {first}}}\n{{"text": "a", "label": {second}}}\n')
    with pytest.raises(DataError, match=sentence):
        read(path, multi_label=first.startswith("["))


def test_a_file_without_a_header_takes_the_names_given(tmp_path):
    path = write(tmp_path, "a.csv", "one,two,4.5\nthree,four,0\n")
    actual = read(path, text="s", text2="t", label="n", columns=("s", "t", "n"), regression=True)
    assert actual == [("one", "two", 4.5), ("three", "four", 0.0)]


@pytest.mark.parametrize(
    "text, layout, output",
    [
        ("text,label\na,x\nb\n", {}, "line 3: 1 fields, where 2 are expected (text, label)"),
        ("text,label\na,x\n ,y\n", {}, "line 3: text holds no text (' ')"),
        ("text,label\na,x\nb,\n", {}, "line 3: label holds no label ('')"),
        ("text,label\na,high\n", {"regression": True}, "line 2: label is 'high', where a number is expected"),
        ("text,label\na,nan\n", {"regression": True}, "line 2: label is 'nan'"),
        ("text,label\na,1_5\n", {"regression": True}, "line 2: label is '1_5', where a number is expected"),
        (
            "body,klass\na,x\n",
            {},
            "no column with the text was found; its columns are body, klass; expected was text",
        ),
        ("text,label\na,x\n", {"columns": ("text", "label")}, "line 1 is the header text, label: leave --columns out"),
        ("text,label\na,x\n", {"label": "class"}, "has no column 'class'; its columns are text, label"),
        ("text,text,label\na,b,x\n", {}, "two columns are named 'text' (text, text, label); rename one"),
        ("text,label\n", {}, "holds no example"),
        ("", {}, "is empty"),
        ('text,label\n"a,x\n', {}, "line 2: not CSV"),
        (b"text,label\na,x\n\xff,y\n", {}, "line 3: not UTF-8"),
        (b"text,label\ra,x\rb,y\r", {}, " ends its lines with CR alone"),
        (b"text,label\na\rb,x\n", {}, "line 2: not CSV (a CR without LF outside quotes)"),
        ("text,label\na,x\n".encode("utf-16"), {}, " is text in UTF-16: save"),
        ("text,label\na,x\n".encode("utf-16-be"), {}, " is text in UTF-16: save"),
        (bytes(range(256)), {}, " is not a text file"),
    ],
)
def test_bad_files_are_named_with_the_line(tmp_path, text, layout, output):
    path = write(tmp_path, "bad.csv", text)
    with pytest.raises(DataError) as error:
        read(path, **layout)
    assert output in str(error.value) and str(path) in str(error.value)


def test_a_list_where_one_label_is_expected_is_told(tmp_path):
    with pytest.raises(DataError, match="line 1: label is a list .*, where one label is expected"):
        read(write(tmp_path, "a.jsonl", '{"text": "a", "label": ["x", "y"]}\n'))


def test_a_missing_second_text_is_told_before_the_label(tmp_path):
    with pytest.raises(DataError, match="no column with the second text was found; its columns are text, label"):
        list(read_sentences(write(tmp_path, "a.csv", "text,label\na,x\n"), ColumnLayout(regression=True), pair=True))


def test_a_file_whose_first_block_ends_inside_a_character_is_text(tmp_path):
    for text in ("\0" + "é" * 5000, "\0 " + "é" * 5000):  # a character of two bytes is cut in one of them
        assert read(write(tmp_path, "a.tsv", f"text\tlabel\n{text}\tx\n")) == [(text, None, "x")]


def test_one_label_in_two_unicode_forms_is_one_label(tmp_path):
    path = write(tmp_path, "a.csv", "text,label\na,caf\u00e9\nb,cafe\u0301\n")
    assert read(path) == [("a", None, "caf\u00e9"), ("b", None, "caf\u00e9")]
    assert LabelledSentence(("a",), ("cafe\u0301",)).labels == ("caf\u00e9",)
    assert TaskSettings("classify", ("a", "cafe\u0301")).labels == ("a", "caf\u00e9")
    both = ("caf\u00e9", "cafe\u0301")
    assert TaskSettings("classify", both).labels == both  # as an earlier version trained it


def test_empty_columns_of_a_spreadsheet_need_no_names(tmp_path):
    assert read(write(tmp_path, "a.csv", "text,label,,\na,x,,\n")) == [("a", None, "x")]


@pytest.mark.parametrize("name, tab", [("a.csv", ","), ("a.tsv", "\t")])
def test_spaces_around_the_names_of_columns_do_not_count(name, tab, tmp_path):
    path = write(tmp_path, name, f"text{tab} text2 {tab} label\na{tab}b{tab} x\n")
    assert read(path) == [("a", "b", "x")]


def test_bad_json_lines_are_named(tmp_path):
    for text, output in (
        ('{"text": "a"}\n{"text": \n', "line 2: not JSON"),
        ("[1]\n", "line 1: a JSON array"),
        ('{"text": "\\ud83d\\ude00"}\n{"text": "a\\ud83d"}\n', "line 2: it holds half of a surrogate pair"),
    ):
        with pytest.raises(DataError, match=output):
            list(read_sentences(write(tmp_path, "bad.jsonl", text), ColumnLayout(), labelled=False))


GLUE_FILES = {
    "cola": ("gj04\t1\t\tThe cat sat.\ngj04\t0\t*\tCat the.\n", ("The cat sat.", None, "acceptable")),
    "sst2": ("sentence\tlabel\na fine film \t1\n", ("a fine film ", None, "positive")),
    "mrpc": (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tHe said "a\tHe said a\n',
        ('He said "a', "He said a", "equivalent"),
    ),
    "stsb": ("index\tgenre\tsentence1\tsentence2\tscore\n0\tnews\ta\tb\t3.2\n", ("a", "b", 3.2)),
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\twhy\twhat\t0\n",
        ("why", "what", "not_duplicate"),
    ),
    "mnli": (
        "index\tsentence1\tsentence2\tlabel1\tgold_label\n0\ta\tb\tneutral\tentailment\n",
        ("a", "b", "entailment"),
    ),
    "qnli": (
        "index\tquestion\tsentence\tlabel\n0\twhy\tso\tnot_entailment\n",
        ("why", "so", "not_entailment"),
    ),
    "rte": ("index\tsentence1\tsentence2\tlabel\n0\ta\tb\tentailment\n", ("a", "b", "entailment")),
    "wnli": ("index\tsentence1\tsentence2\tlabel\n0\ta\tb\t1\n", ("a", "b", "entailment")),
}


def test_values_of_json_that_are_no_labels_and_no_numbers(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"text": "a", "label": {"x": 1, "y": 0}}\n')
    with pytest.raises(DataError, match="line 1: label is an object .*, where a list of labels is expected"):
        read(path, multi_label=True)
    path = write(tmp_path, "b.jsonl", '{"text": "a", "label": true}\n')
    with pytest.raises(DataError, match="line 1: label is True, where a number is expected"):
        read(path, regression=True)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_first_row_of_a_csv_file_without_header_decides_its_delimiter(tmp_path, separator):
    path = write(tmp_path, "a.csv", f'"a; b, c"{separator}x\nd{separator}y\n')
    assert read(path, columns=("text", "label")) == [("a; b, c", None, "x"), ("d", None, "y")]
    path = write(tmp_path, "b.csv", f"text{separator}label\nd{separator}y\n")
    with pytest.raises(DataError, match="line 1 is the header text, label: leave --columns out"):
        read(path, columns=("text", "label"))


def test_a_file_of_quotes_that_are_not_closed_is_not_read_again_and_again(tmp_path):
    path = write(tmp_path, "a.csv", "text,label,note\n" + 'A film",bad,"not closed\n' * 20_000)
    begun = time.process_time()
    with pytest.raises(DataError, match=r"a\.csv: many quotes up to line .* are not closed: close them, or save the"):
        list(records_or_errors(path))
    assert time.process_time() - begun < 30


@pytest.mark.parametrize(
    "name, text, actual",
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n{"text": "b"}\n', {1: "a", 2: "line 2: not UTF-8", 3: "b"}),
        ("a.tsv", b"text\tn\na\t1\n\xff\t2\nb\t3\n", {2: "a", 3: "line 3: not UTF-8", 4: "b"}),
        ("a.csv", b"text,n\na,1\n\xff,2\nb,3\n", {2: "a", 3: "line 3: not UTF-8", 4: "b"}),
        ("a.csv", b'text,n\na,1\n"b"c,2\nd,3\n', {2: "a", 3: "line 3: not CSV", 4: "d"}),
        # Nobody closes this quote: the rows after it are good all the same.
        ("a.csv", b'text,n\na,1\n"b,2\nc,3\n"d\ne",4\n', {2: "a", 3: "line 3: not CSV", 4: "c", 5: "d\ne"}),
        (
            "a.csv",
            b'text,n\n"a,1\nb,2\n\xff,3\nc,4\n',
            {2: "line 4: not UTF-8", 3: "b", 4: "line 4: not UTF-8", 5: "c"},
        ),
        ("a.csv", b'text,n\na,1\n"b', {2: "a", 3: "line 3: not CSV"}),
    ],
)
def test_a_bad_row_has_its_error_in_its_place_and_the_others_are_read(tmp_path, name, text, actual):
    path, read = write(tmp_path, name, text), {}
    for number, record in records_or_errors(path):
        assert number not in read
        read[number] = record
    assert list(read) == list(actual)
    for number, record in read.items():
        if isinstance(record, DataError):
            assert actual[number] in str(record)
        else:
            assert record["text"] == actual[number]


def test_lines_of_text_too_have_an_error_in_the_place_of_a_bad_one(tmp_path):
    path = write(tmp_path, "a.txt", b"a\n\xff\n\nb\n")
    (_, first), (number, bad), (last, second) = records_or_errors(path, "lines", ("text",))
    assert (first, second, last) == ({"text": "a"}, {"text": "b"}, 4)
    assert number == 2 and isinstance(bad, DataError)


@pytest.mark.parametrize("name", GLUE_FILES)
def test_every_glue_task_is_read_by_its_name(tmp_path, name):
    text, first = GLUE_FILES[name]
    path = write(tmp_path, f"{name}.tsv", text)
    examples = list(TASK.read(path, options(glue=name)))
    assert (examples[0].text_a, examples[0].text_b, examples[0].target) == first
    settings = TASK.settings(options(glue=name), examples)
    assert settings.pair == (first[1] is not None) and settings.regression == (name == "stsb")


def test_stsb_also_comes_as_three_columns_without_a_header(tmp_path):
    path = write(tmp_path, "s.csv", 'A man.,"A man, too.",4.75\n')
    assert [one.target for one in TASK.read(path, options(glue="stsb"))] == [4.75]


def test_a_glue_file_of_another_task_says_found_and_expected(tmp_path):
    path = write(tmp_path, "x.tsv", "sentence\tlabel\na\t1\n")
    with pytest.raises(
        DataError,
        match="its header is sentence, label; GLUE's rte has the columns sentence1, sentence2, label",
    ):
        glue_layout("rte", path)
    with pytest.raises(DataError, match="line 2: the label is '7'; this task has 0, 1"):
        list(TASK.read(write(tmp_path, "y.tsv", "sentence\tlabel\na\t7\n"), options(glue="sst2")))
    # As many columns as a file of the task without a header has.
    for name, header, expected in (
        ("stsb", "text_a\ttext_b\tlabel", "sentence1, sentence2, score"),
        ("cola", "id\tlabel\tnote\ttext", "sentence, label"),
    ):
        path = write(tmp_path, f"{name}.tsv", f"{header}\na\t1\t1\tb\n")
        output = f"its header is {header.replace(chr(9), ', ')}; GLUE's {name} has the columns {expected}"
        with pytest.raises(DataError, match=output):
            list(TASK.read(path, options(glue=name)))


def test_the_broken_rows_of_a_glue_file_are_left_out_and_counted(tmp_path, capsys):
    head = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    rows = ["0\t1\t2\tWho?\tWhat?\t0", "1\t3\t4\tcut", "2\t5\t6\tWhy?\t\t0", "3\t7\t8\tHow?\tHow so?\t1"]
    path = write(tmp_path, "train.tsv", head + "\n".join(rows) + "\n")
    assert [one.text_a for one in TASK.read(path, options(glue="qqp"))] == ["Who?", "How?"]
    output = capsys.readouterr().err.strip().splitlines()
    assert len(output) == 1 and "left out 2 rows" in output[0] and "line 3: 4 fields" in output[0]
    own = {"text_column": "question1", "text2_column": "question2", "label_column": "is_duplicate"}
    with pytest.raises(DataError, match="line 3: 4 fields"):
        list(TASK.read(path, options(**own)))
    with pytest.raises(DataError, match="line 2: not UTF-8"):
        list(TASK.read(write(tmp_path, "b.tsv", head.encode() + b"0\t1\t2\t\xff\tWhat?\t0\n"), options(glue="qqp")))


def test_very_long_words_and_texts_are_cut_to_the_length(tiny_bert):
    examples = [
        SentenceExample("a" * 300),
        SentenceExample("the cat " * 10_000),
        SentenceExample("big", "the dog " * 10_000),
    ]
    rows = TASK.encode(examples, tiny_bert.tokenizer, TaskSettings("classify", ("a", "b"), max_length=32))
    assert rows.lengths.tolist() == [3, 32, 32]
    assert rows.sequences["token_ids"][0][1] == tiny_bert.tokenizer.unk_id


@pytest.mark.parametrize("value", [None, float("nan"), 5, [], {}])
@pytest.mark.parametrize("pair", [False, None])
def test_a_missing_value_of_a_table_is_no_text(value, pair):
    settings = TaskSettings("classify", ("a", "b"), pair=pair)
    with pytest.raises(
        DataError, match="This model reads a text, and text_a is (missing or empty|nan, which|5, which)"
    ):
        TASK.example(value, settings)
    assert TASK.example(np.array(["big"]), settings) == SentenceExample("big")


@pytest.mark.parametrize("record", [{}, {"text": None}, {"text_a": ""}, {"sentence": " "}])
def test_a_record_without_a_text_says_what_to_give(record):
    with pytest.raises(DataError) as told:
        TASK.example(record, TaskSettings("classify", ("a", "b"), pair=False))
    assert str(told.value) == (
        'This model reads a text, and text_a is missing or empty: give "text_a" or "text" with at least one word.'
    )
    with pytest.raises(DataError, match='text_b is missing or empty: give "text_a" and "text_b" with'):
        TASK.example({"text_a": "a", "text_b": " "}, TaskSettings("classify", ("a", "b"), pair=True))


def test_labels_are_in_order_and_checked(tmp_path):
    path = write(tmp_path, "a.csv", "text,label\na,10\nb,9\nc,10\n")
    examples = list(TASK.read(path, options()))
    settings = TASK.settings(options(), examples)
    assert settings.labels == ("9", "10")
    np.testing.assert_array_equal(targets(examples, settings), [1, 0, 1])
    other = list(TASK.read(write(tmp_path, "b.csv", "text,label\nd,11\n"), options()))
    with pytest.raises(DataError, match="b.csv line 2: the label '11' is not one of the model's: 9, 10"):
        TASK.check(other, settings)
    several = TaskSettings("classify", ("x", "y"), multi_label=True)
    other = list(
        TASK.read(write(tmp_path, "d.jsonl", '{"text": "a", "label": ["x", "z"]}\n'), options(multi_label=True))
    )
    with pytest.raises(DataError, match="d.jsonl line 1: the label 'z' is not one of the model's: x, y"):
        TASK.check(other, several)
    pair = list(TASK.read(write(tmp_path, "c.csv", "text,text2,label\nd,e,9\n"), options()))
    with pytest.raises(DataError, match="reads single texts, and this is a pair"):
        TASK.check(pair, settings)


def test_a_label_named_nan_stands_behind_the_numbers():
    for last in range(2, 40):
        numbers = [str(number) for number in range(last)]
        examples = [SentenceExample("a", target=label) for label in ("nan", *numbers)]
        assert TASK.settings(options(), examples).labels == (*numbers, "nan")


def test_one_class_only_is_nothing_to_learn(tmp_path):
    examples = list(TASK.read(write(tmp_path, "a.csv", "text,label\na,x\nb,x\n"), options()))
    with pytest.raises(DataError, match="a.csv holds only the label 'x'"):
        TASK.settings(options(), examples)


def test_the_one_of_several_labels_that_every_example_has_is_nothing_to_learn(tmp_path):
    several = options(multi_label=True)
    examples = list(TASK.read(write(tmp_path, "a.csv", "text,label\na,x\nb,x\n"), several))
    with pytest.raises(DataError, match="a.csv holds only the label 'x'; there is nothing to tell apart"):
        TASK.settings(several, examples)
    examples = list(
        TASK.read(write(tmp_path, "b.jsonl", '{"text": "a", "label": ["x"]}\n{"text": "b", "label": []}\n'), several)
    )
    assert TASK.settings(several, examples).labels == ("x",)


def test_class_weights_are_balanced_or_as_given(tmp_path):
    examples = list(TASK.read(write(tmp_path, "a.csv", "text,label\na,x\nb,y\nc,y\nd,y\n"), options()))
    settings = TASK.settings(options(), examples)
    actual = TASK.training_settings(options(class_weights="balanced"), examples, settings)
    assert actual.extra["class_weights"] == {"x": 2.0, "y": pytest.approx(4 / 6)}
    actual = TASK.training_settings(options(class_weights="x=3,y=0.5"), examples, settings)
    assert actual.extra["class_weights"] == {"x": 3.0, "y": 0.5}
    for wrong in ("z=1", "x", "x=-1", "x=nan", "x=1,", "x=1;y=2"):
        with pytest.raises(TaskError, match="--class-weights has"):
            TASK.training_settings(options(class_weights=wrong), examples, settings)


def test_class_weights_of_labels_with_commas_and_spaces():
    counts = {"x, y": 2, "x": 1, "a=b": 3}
    assert class_weights(" x, y = 2, x=1e-1 ,a=b=3", counts) == {"x, y": 2.0, "x": 0.1, "a=b": 3.0}
    with pytest.raises(TaskError, match="names 'x' twice"):
        class_weights("x=1,x=2", counts)
    with pytest.raises(TaskError, match="has 'z=2'; .* with the labels 'x, y', 'x', 'a=b'"):
        class_weights("x=1,z=2", counts)


def test_class_weights_are_in_the_rows_to_learn_from(tiny_bert, tmp_path):
    examples = list(TASK.read(write(tmp_path, "a.csv", "text,label\na,y\nb,x\nc,y\n"), options()))
    settings = TASK.settings(options(), examples)
    weighted = TASK.training_settings(options(class_weights="x=3,y=0.5"), examples, settings)
    rows = TASK.encode(examples, tiny_bert.tokenizer, weighted, training=True)
    assert rows.values["weights"].tolist() == [0.5, 3.0, 0.5] and rows.values["targets"].tolist() == [1, 0, 1]
    rows = TASK.encode(examples, tiny_bert.tokenizer, settings, training=True)
    assert rows.values["weights"].tolist() == [1, 1, 1]


def test_the_settings_of_a_task_go_through_a_file(tmp_path):
    settings = TaskSettings("classify", ("a", "b"), "mean", pair=True, extra={"class_weights": {"a": 2.0}})
    (tmp_path / "task.json").write_text(json.dumps(settings.to_dict()))
    assert read_settings(tmp_path) == settings
    (tmp_path / "task.json").write_text(json.dumps({**settings.to_dict(), "pooling": "sum"}))
    with pytest.raises(TaskError, match="task.json: There is no pooling 'sum'"):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    "wrong",
    [
        {"task": "sing"},
        {"labels": ["a", "a"]},
        {"max_length": 2},
        {"labels": [1, 2]},
        {"multi_label": True, "regression": True},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(TaskError):
        TaskSettings(**{"task": "classify", **wrong})


@pytest.mark.parametrize(
    "name, metric",
    [("cola", "matthews"), ("sst2", "accuracy"), ("mrpc", "f1"), ("qqp", "f1"), ("stsb", "spearman")]
    + [(name, "accuracy") for name in ("mnli", "qnli", "rte", "wnli")],
)
def test_each_glue_task_is_judged_by_its_own_score(name, metric):
    settings = TASK.settings(options(glue=name), [SentenceExample("a", "b", 1.0 if name == "stsb" else "x")])
    assert settings.metric == metric
    assert metric in TASK.metrics(settings, [SentenceExample("a", "b", 1.0 if name == "stsb" else settings.labels[0])])


@pytest.mark.parametrize(
    "key, value",
    [
        ("architectures", 1e308),
        ("architectures", {"a": 1}),
        ("id2label", 3),
        ("id2label", ["a"]),
        ("max_position_embeddings", "many"),
        ("pad_token_id", [1]),
        ("num_labels", "3"),
        ("num_labels", 0),
    ],
)
def test_a_config_with_a_value_of_the_wrong_kind_names_the_key(tmp_path, key, value):
    from bert_tf.errors import CheckpointError

    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], key: value}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=f"{key} must be"):
        read_settings(tmp_path)


def test_labels_that_are_equal_and_regressions_of_several_values_are_refused(tmp_path):
    from bert_tf.errors import CheckpointError

    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}
    (tmp_path / "config.json").write_text(json.dumps({**config, "id2label": {"0": "A", "1": "B", "2": "A"}}))
    with pytest.raises(CheckpointError, match="config.json: id2label has the label 'A' twice"):
        read_settings(tmp_path)
    three = {"id2label": {"0": "A", "1": "B", "2": "C"}, "problem_type": "regression"}
    (tmp_path / "config.json").write_text(json.dumps({**config, **three}))
    with pytest.raises(TaskError, match="a regression of 3 values.*To read the encoder alone"):
        read_settings(tmp_path)


@pytest.mark.parametrize("model_type, most", [("bert", 512), ("roberta", 512)])
def test_a_config_without_names_of_labels_and_with_nulls_has_the_usual_values(tmp_path, model_type, most):
    name = {"bert": "Bert", "roberta": "Roberta"}[model_type]
    nulls = {"pad_token_id": None, "max_position_embeddings": None}
    config = {"model_type": model_type, "architectures": [f"{name}ForSequenceClassification"], "num_labels": 3, **nulls}
    (tmp_path / "config.json").write_text(json.dumps(config))
    actual = read_settings(tmp_path)
    assert actual.labels == ("LABEL_0", "LABEL_1", "LABEL_2") and actual.max_length == most
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_labels": 1}))
    assert read_settings(tmp_path).regression


def test_capitals_in_the_names_of_columns_do_not_count(tmp_path):
    assert read(write(tmp_path, "excel.csv", "Text,Label\na,x\n")) == [("a", None, "x")]


def test_what_the_first_json_line_lacks_no_later_line_may_have(tmp_path):
    late = write(tmp_path, "late.jsonl", '{"text": "a", "label": "x"}\n{"text": "b", "text2": "c", "label": "y"}\n')
    with pytest.raises(DataError, match="line 2: it has 'text2', and the first row has not"):
        read(late)
    empty = write(tmp_path, "empty.jsonl", '{"text": "a", "label": "x"}\n{"text": "b", "text2": null, "label": "y"}\n')
    assert read(empty) == [("a", None, "x"), ("b", None, "y")]


def test_a_json_line_without_the_key_of_its_labels_is_not_one_without_labels(tmp_path):
    rows = '{"text": "a", "labels": ["x"]}\n{"text": "b", "labels": []}\n{"text": "c", "label": ["y"]}\n'
    with pytest.raises(DataError, match="line 3: there is no 'labels'; give it in all rows, an empty list or null"):
        read(write(tmp_path, "a.jsonl", rows), multi_label=True)


def test_one_number_is_one_label_of_several(tmp_path):
    values = ["0", "1", "[0]", '"0"', "false", "null", "[]"]
    path = write(tmp_path, "a.jsonl", "".join(f'{{"text": "a", "label": {value}}}\n' for value in values))
    with pytest.raises(DataError, match="the label is the boolean false"):
        read(path, multi_label=True)
    values.remove("false")
    path = write(tmp_path, "b.jsonl", "".join(f'{{"text": "a", "label": {value}}}\n' for value in values))
    assert [target for _, _, target in read(path, multi_label=True)] == [("0",), ("1",), ("0",), ("0",), (), ()]


def test_an_empty_separator_of_labels_is_refused(tmp_path):
    path = write(tmp_path, "a.csv", "text,label\na,x\n")
    with pytest.raises(TaskError, match="--label-separator is empty"):
        list(TASK.read(path, options(multi_label=True, label_separator="")))
    assert [one.target for one in TASK.read(path, options(label_separator=""))] == ["x"]
