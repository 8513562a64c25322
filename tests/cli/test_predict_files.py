"""The files that `predict --input` reads: tables and texts as `features` does; what is wrong with them is said once."""

import csv
import gzip
import io
import json

import pytest

from bert_tf.batch_jobs.jobs import FeaturesJob, PredictJob, TaskJob
from bert_tf.cli import main
from bert_tf.finetuning.data.sentence_examples import ColumnLayout, read_sentences
from tests.app.random_task_models import save_tasks

TEXTS = ["the [MASK] sat", 'a "small" cat, [MASK]']


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    save_tasks(home)
    return home


def tokens(captured):
    return [json.loads(line)["tokens"] for line in captured.out.splitlines()]


@pytest.mark.parametrize(
    "name, text, options",
    [
        ("in.csv", 'text,n\n{0},1\n\n"a ""small"" cat, [MASK]",2\n', ()),
        ("in.csv", 'own;n\n{0};1\n"a ""small"" cat, [MASK]";2\n', ("--text-column", "own")),
        ("in.csv", '{0},1\n"a ""small"" cat, [MASK]",2\n', ("--columns", "text,n")),
        ("in.tsv", "n\tsentence\n1\t{0}\n2\t{1}\n", ()),
        ("in.txt", "{0}\n\n{1}\n", ()),
        ("in.dat", "{0}\n{1}\n", ("--format", "lines")),
        ("in.jsonl", '{{"own": "{0}"}}\n{{"own": "a \\"small\\" cat, [MASK]"}}\n', ("--text-column", "own")),
    ],
)
def test_masks_in_tables_and_texts_are_predicted(name, text, options, tmp_path, tiny_folder, tiny_bert, capsys):
    source = tmp_path / name
    source.write_text(text.format(*TEXTS))
    arguments = ["predict", "--input", str(source), "--model", str(tiny_folder), "--top-k", "1", *options]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    assert tokens(captured) == [list(tiny_bert.predict(text, top_k=1).tokens) for text in TEXTS]
    blank = ", 1 blank line left out" if "\n\n" in text else ""
    assert captured.err.endswith(f"2 answered{blank}.\n")


def test_a_pair_and_a_word_to_mask_stand_in_columns(tmp_path, tiny_folder, tiny_bert, capsys):
    source = tmp_path / "in.csv"
    source.write_text("text,text2,mask\nthe cat,it ran,cat\nthe [MASK],it ran,\n")
    assert main(["predict", "--input", str(source), "--model", str(tiny_folder), "--quiet"]) == 0
    expected = [tiny_bert.predict("the cat", "it ran", "cat"), tiny_bert.predict("the [MASK]", "it ran")]
    assert tokens(capsys.readouterr()) == [list(answer.tokens) for answer in expected]


def test_a_bad_row_of_a_table_is_told_in_its_place(tmp_path, tiny_folder, capsys):
    source = tmp_path / "in.csv"
    source.write_text("text,n\nthe [MASK]\nthe [MASK],2\n")
    assert main(["predict", "--input", str(source), "--model", str(tiny_folder), "--quiet"]) == 3
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["line"] == 2 and second["masks"]
    assert first["error"] == "1 fields, where 2 are expected (text, n)."  # not the place a second time


@pytest.mark.parametrize(
    "name, text, options, sentence",
    [
        ("in.csv", "a,b\nx [MASK],y\n", (), "no column with the text was found; its columns are a, b"),
        ("in.csv", "a,b\nx [MASK],y\n", ("--text-column", "z"), "has no column 'z'; its columns are a, b."),
        ("in.csv", "text\nx [MASK]\n", ("--format", "xml"), "no format 'xml'; choose from lines, csv, tsv, jsonl"),
        ("in.txt", '{"text_a": "x [MASK]"}\n', (), "holds JSON lines, and .txt is read as a text on each line"),
        ("in.txt", "\ufeffx [MASK]\ny [MASK]\n".encode("utf-16-le"), (), "in.txt is text in UTF-16"),
        ("in.jsonl", '{"text": "x"}\n{"text": "y"}\n'.encode("utf-16-be"), (), "in.jsonl is text in UTF-16"),
        ("in.txt", b"PK\3\4\0\0\xff\n" * 9, (), "in.txt is not a text file"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence_before_the_model_is_loaded(
    name, text, options, sentence, tmp_path, tiny_folder, capsys, monkeypatch
):
    monkeypatch.setattr("bert_tf.cli.batch.load_model", None)
    source = tmp_path / name
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["predict", "--input", str(source), "--model", str(tiny_folder), *options]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err and len(captured.err.splitlines()) == 1 and not captured.out


@pytest.mark.parametrize("ending", ["csv", "TSV", "parquet", "jsonl.gz"])
def test_json_lines_are_not_written_under_the_name_of_a_table(ending, tmp_path, tiny_folder, capsys):
    source, output = tmp_path / "in.txt", tmp_path / f"out.{ending}"
    source.write_text(TEXTS[0])
    arguments = ["predict", "--input", str(source), "--output", str(output), "--model", str(tiny_folder)]
    assert main(arguments) != 0 and not output.exists()
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "JSON lines" in sentence and ".jsonl" in sentence and str(output) in sentence


def test_a_table_of_predictions_has_one_of_three_endings(tasks, tmp_path, capsys):
    (tmp_path / "in.csv").write_text("text\na cat\n")
    argv = ["predict", "--model", tasks / "classes", "--input", tmp_path / "in.csv", "--output", tmp_path / "out.xlsx"]
    assert main([*map(str, argv)]) == 2 and not (tmp_path / "out.xlsx").exists()
    assert "written as .csv, .tsv or .jsonl: end the name of --output so, not as in" in capsys.readouterr().err


@pytest.mark.parametrize("name, options", [("in.jsonl.gz", ()), ("in.gz", ("--format", "csv"))])
def test_a_compressed_file_is_refused_and_not_read_as_text(name, options, tasks, tmp_path, tiny_folder, capsys):
    (tmp_path / name).write_bytes(gzip.compress(b'{"text": "the [MASK]"}\n' * 9))
    for model in (tiny_folder, tasks / "classes"):
        reading = ["--input", str(tmp_path / name), *(options or ("--format", "jsonl"))]
        assert main(["predict", "--model", str(model), *reading]) == 2
        captured = capsys.readouterr()
        assert f"{name} is compressed with gzip, and a plain file is read here" in captured.err and not captured.out


@pytest.mark.parametrize(
    "name, options", [("in.txt", ()), ("in.jsonl", ()), ("in.csv", ("--format", "lines")), ("in.txt", ("features",))]
)
def test_columns_of_a_file_that_has_none_are_refused(name, options, tasks, tmp_path, tiny_folder, capsys):
    (tmp_path / name).write_text("7\tthe [MASK]\n")
    reading = ["--input", str(tmp_path / name), "--columns", "id,text", "--text-column", "text", *options]
    models = [str(tiny_folder)] if name == "in.txt" else [str(tiny_folder), str(tasks / "classes")]
    command = ["predict"]
    if "features" in options:
        command, reading = ["features", "--output", str(tmp_path / "out.npy")], reading[:-1]
    for model in models:
        assert main([*command, "--model", model, *reading]) == 2
        captured = capsys.readouterr()
        read_as = "JSON lines" if name == "in.jsonl" else "a text on each line"
        assert f"{name} is read as {read_as}, where --columns has no effect: leave it out" in captured.err
        assert not captured.out


def test_options_of_a_file_without_a_file_are_refused(tiny_folder, capsys):
    assert main(["predict", "the [MASK]", "--model", str(tiny_folder), "--text-column", "x"]) == 2
    assert "--text-column goes with --input FILE" in capsys.readouterr().err


def test_a_number_of_predictions_is_refused_by_a_classifier(tasks, capsys):
    assert main(["predict", "the cat", "--model", str(tasks / "classes"), "--top-k", "3"]) == 2
    assert "--mask, --target, --top-k and --trace go with a model that predicts masks" in capsys.readouterr().err


@pytest.mark.parametrize(
    "model, name, text, options, sentence",
    [
        (
            "classes",
            "in.csv",
            "own,n\na cat,1\na dog,2\n",
            (),
            "no column with the text was found; its columns are own, n",
        ),
        ("classes", "in.csv", "own,n\na cat,1\n", ("--text-column", "z"), "has no column 'z'; its columns are own, n."),
        ("classes", "in.txt", "a cat\na dog\n", (), "A file with one text on each line needs --format lines."),
        ("answers", "in.csv", "question,text\nwho,me\n", (), "'passage' is missing or empty (found: question, text)"),
        ("words", "in.csv", "a,b\nwho,me\n", (), 'Give a "text", or "words"'),
    ],
)
def test_a_column_that_a_task_lacks_is_said_once(
    model, name, text, options, sentence, tasks, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("bert_tf.cli.predict_task.load_task_model", None)
    source, target = tmp_path / name, tmp_path / "out.jsonl"
    source.write_text(text)
    command = ["predict", "--model", str(tasks / model), "--input", str(source), "--output", str(target), *options]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert sentence in error and len(error.splitlines()) == 1 and not target.exists()


@pytest.mark.parametrize("text", ["", "\n \n"])
@pytest.mark.parametrize("model", ["plain", "classes"])
def test_a_file_without_a_text_is_an_error(model, text, tasks, tmp_path, capsys, monkeypatch):
    source = tmp_path / "in.jsonl"
    source.write_text(text)
    assert main(["predict", "--model", str(tasks / model), "--input", str(source)]) == 2
    assert f"{source} contains no " in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["predict", "--model", str(tasks / model), "--input", "-"]) == 2
    captured = capsys.readouterr()
    assert captured.err.endswith(("standard input contains no text.\n", "standard input contains no example.\n"))
    assert not captured.out


def test_a_single_line_that_was_read_as_the_columns_is_explained(tasks, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text("A good film.\n")
    assert main(["predict", "--model", str(tasks / "classes"), "--input", str(source)]) == 2
    expected = (
        "no example after its first line, which names the columns. A file with one text on each line needs --format"
    )
    assert expected in capsys.readouterr().err


def test_a_pipeline_says_it_once_too(tasks, tmp_path):
    (tmp_path / "in.csv").write_text("own\na cat\n")
    with pytest.raises(ValueError, match="no column with the text"):
        next(TaskJob(str(tasks / "classes")).rows(str(tmp_path / "in.csv")))


@pytest.mark.parametrize(
    "name, text",
    [
        ("in.csv", "Text,SENTENCE2\nthe cat,it ran\n"),
        ("in.csv", "text_a,text,text_b,text2\nother,the cat,other,it ran\n"),
        ("in.jsonl", '{"Sentence1": "the cat", "text2": "it ran"}\n'),
        ("in.jsonl", '{"text": null, "text_a": "the cat", "text_b": "it ran"}\n'),
    ],
)
def test_a_classifier_finds_the_texts_as_its_training_did(name, text, tasks, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    if "null" not in text:
        (example,) = read_sentences(tmp_path / name, ColumnLayout(), labelled=False)
        assert (example.text_a, example.text_b) == ("the cat", "it ran")
    model = str(tasks / "pairs")
    assert main(["predict", "--model", model, "--input", str(tmp_path / name), "--quiet"]) == 0
    actual = json.loads(capsys.readouterr().out)
    assert main(["predict", "--model", model, "the cat", "it ran", "--json"]) == 0
    assert actual == json.loads(capsys.readouterr().out)


def rows_of_table(tasks, source, *options):
    """The rows of the table that the random classifier writes for a file, whose exit code is 0."""
    output = source.with_name("out.csv")
    argv = ["predict", "--model", tasks / "classes", "--input", source, "--output", output, "--quiet", *options]
    assert main([*map(str, argv)]) == 0
    return list(csv.DictReader(output.open(encoding="utf-8", newline="")))


def test_a_table_says_what_was_cut_of_a_later_row(tasks, tmp_path, capsys):
    (tmp_path / "in.csv").write_text(f"text\na cat\n{'a cat ' * 300}\n")
    whole, cut = rows_of_table(tasks, tmp_path / "in.csv")
    assert whole["truncated"] == "" and json.loads(cut["truncated"])["tokens_a"] > 0
    assert list(whole)[-2:] == ["truncated", "error"] and not capsys.readouterr().err


def test_keys_of_later_rows_that_a_table_has_no_columns_for_are_named(tasks, tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text('{"text": "a cat"}\n{"id": 7, "text": "a dog"}\n{"id": 8, "text": "far"}\n')
    assert [row["text"] for row in rows_of_table(tasks, tmp_path / "in.jsonl")] == ["a cat", "a dog", "far"]
    assert "out.csv has the columns of the first answered row; of later rows 'id' is not in it." in (
        capsys.readouterr().err
    )
    (tmp_path / "in.jsonl").write_text('{"text": "a cat", "id": null}\n{"id": 7, "text": "a dog"}\n')
    assert [row["id"] for row in rows_of_table(tasks, tmp_path / "in.jsonl")] == ["", "7"]
    assert not capsys.readouterr().err


def test_blank_lines_of_a_task_and_of_vectors_are_counted(tasks, tiny_folder, tmp_path, capsys):
    (tmp_path / "in.csv").write_text("text\n\na cat\n\na dog\n")
    source = ["--input", str(tmp_path / "in.csv")]
    assert main(["predict", "--model", str(tasks / "classes"), *source]) == 0
    assert capsys.readouterr().err.endswith("2 answered, 2 blank lines left out.\n")
    assert main(["features", "--model", str(tiny_folder), *source, "--output", str(tmp_path / "out.npy")]) == 0
    assert ", 2 blank lines left out.\n" in capsys.readouterr().err


def test_predictions_and_vectors_read_the_same_rows(tmp_path):
    for name, text in (("in.txt", "the cat\n\nit, ran\n"), ("in.csv", 'text,text2\nthe cat,a\n"it, ran",b\n')):
        (tmp_path / name).write_text(text)
        rows = [row for _, row in PredictJob("m").rows(str(tmp_path / name))]
        assert [row[:2] for row in rows] == [row for _, row in FeaturesJob("m").rows(str(tmp_path / name))]
