"""Jobs by Beam and by Spark's function give what one machine gives: predictions, task predictions, vectors."""

import json
import pickle
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from bert_tf.batch_jobs.jobs import FeaturesJob, PredictJob, TaskJob, answer_line, row_of_line
from bert_tf.batch_jobs.spark import pandas_function
from bert_tf.cli import main
from bert_tf.errors import DataError, InputError
from tests.app.random_task_models import save_tasks

RECORDS = [{"text_a": f"the cat ran {'far and ' * (number % 7)}[MASK]"} for number in range(40)]
RECORDS[3] = {"text_a": ""}
RECORDS[20] = {"text": "no text_a"}
MANY_PROCESSES = "--direct_running_mode=multi_processing --direct_num_workers=2"


@pytest.fixture(scope="module")
def beam():
    """The module of the pipelines; Apache Beam takes seconds to import, in the one process that runs these tests."""
    from bert_tf.batch_jobs import beam

    return beam


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    save_tasks(home)
    return home


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The folder of in.jsonl and in.txt."""
    folder = tmp_path_factory.mktemp("source")
    (folder / "in.jsonl").write_text("\n".join(json.dumps(record) for record in RECORDS) + "\nnot JSON\n")
    (folder / "in.txt").write_text("".join(f"the cat ran {'far ' * (number % 9)}\n" for number in range(40)))
    return folder


def joined(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.glob("part-*")))


def test_beam_does_not_delete_the_files_that_it_reads(beam, tmp_path):
    part = tmp_path / "rows.jsonl" / "part-0"
    part.parent.mkdir()
    part.write_text('{"text_a": "the [MASK]"}\n')
    job = SimpleNamespace()
    with pytest.raises(InputError, match="holds files of the input, which would be deleted"):
        beam.run_pipeline(job, str(part.parent / "part-*"), str(part.parent), "DirectRunner")
    assert part.exists()


@pytest.mark.slow
def test_beam_with_two_processes_predicts_as_one_machine(source, beam, tiny_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(beam, "WINDOWS_PER_PART", 1)  # a window has 2 * 32 lines; processes of workers keep 64
    options = ["predict", "--model", str(tiny_folder), "--input", str(source / "in.jsonl"), "--batch-size", "2"]
    options += ["--target", "cat", "--top-k", "2", "--quiet"]
    assert main([*options, "--output", str(tmp_path / "one.jsonl")]) == 3
    runner = ["--runner", "DirectRunner", "--runner-options", MANY_PROCESSES]
    assert main([*options, "--output", str(tmp_path / "many.jsonl"), *runner]) == 3
    assert joined(tmp_path / "many.jsonl") == (tmp_path / "one.jsonl").read_bytes()
    manifest = json.loads((tmp_path / "many.jsonl" / "manifest.json").read_text())
    assert (manifest["rows"], manifest["bad"]) == (41, 3)
    assert main([*options, "--output", str(tmp_path / "many.jsonl"), *runner]) == 2  # it holds answers


@pytest.mark.slow
def test_beam_predicts_a_task_as_one_machine(tasks, source, tmp_path):
    lines = "text,more\n" + "".join(f'"{"" if n == 5 else f"the cat {n}"}",a\n' for n in range(70))
    (tmp_path / "in.csv").write_text(lines)
    options = ["predict", "--model", str(tasks / "classes"), "--input", str(tmp_path / "in.csv"), "--batch-size", "2"]
    assert main([*options, "--output", str(tmp_path / "one.jsonl"), "--quiet"]) == 3
    assert main([*options, "--output", str(tmp_path / "many.jsonl"), "--quiet", "--runner", "DirectRunner"]) == 3
    assert joined(tmp_path / "many.jsonl") == (tmp_path / "one.jsonl").read_bytes()


@pytest.mark.slow
def test_beam_writes_the_vectors_of_one_machine_file_by_file(source, beam, tiny_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(beam, "WINDOWS_PER_PART", 1)
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text((source / "in.txt").read_text() * 2)
    options = ["features", "--model", str(tiny_folder), "--batch-size", "2", "--quiet"]
    assert main([*options, "--input", str(tmp_path / "a.txt"), "--output", str(tmp_path / "one.npy")]) == 0
    runner = ["--input", str(tmp_path / "[ab].txt"), "--output", str(tmp_path / "many.npy"), "--runner", "DirectRunner"]
    assert main([*options, *runner]) == 0
    parts = [np.load(path) for path in sorted((tmp_path / "many.npy").glob("part-*"))]
    assert [len(part) for part in parts] == [64, 16, 64, 16]
    assert np.array_equal(np.concatenate(parts), np.tile(np.load(tmp_path / "one.npy"), (2, 1)))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--output", "x.csv"], "named .jsonl"),
        (["--output", "x.jsonl", "--resume"], "--resume does not go with --runner"),
        ([], "needs --input"),
    ],
)
def test_what_a_runner_cannot_do_is_said(arguments, message, source, tiny_folder, capsys):
    command = ["predict", "--model", str(tiny_folder), "--input", str(source / "in.jsonl"), "--runner", "DirectRunner"]
    assert main([*command, *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command, model", [("predict", "--model"), ("prepare", "--vocab")])
def test_a_runner_whose_program_cannot_be_fetched_is_one_sentence(
    command, model, tiny_folder, tmp_path, monkeypatch, capsys
):
    def without_network(pipeline):
        raise RuntimeError("Unable to fetch remote job server jar at a.jar: no network")

    monkeypatch.setattr("apache_beam.Pipeline.run", without_network)
    (tmp_path / "in.txt").write_text("the cat sat\n\nit ran\n")
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.jsonl")]
    assert main([command, *files, model, str(tiny_folder), "--runner", "FlinkRunner"]) == 2
    assert "FlinkRunner cannot begin. Unable to fetch remote job server jar" in capsys.readouterr().err


@pytest.mark.parametrize("keys", [("text_a", "text_b"), ("text", "text2"), ("sentence1", "sentence2")])
def test_a_line_of_json_may_name_its_texts_as_a_table_does(keys):
    line = json.dumps({"id": 7, **dict(zip(keys, "xy"))}).encode()
    assert row_of_line(line) == ("x", "y", ())
    assert row_of_line(json.dumps({keys[0]: "x", "mask": [1]}).encode()) == ("x", None, [1])


def test_half_a_surrogate_pair_in_an_error_does_not_end_the_job():
    line = answer_line(7, row_of_line(r'{"\ud800 é": 1}'.encode()))
    assert (
        json.loads(line.encode("utf-8"))["error"]
        == 'no "text_a" in it (it has: \ud800 é); --text-column names another key.'
    )
    assert "é" in line and line.endswith("\n")


def test_sparks_function_predicts_as_one_machine(source, tiny_folder, tmp_path):
    job = pickle.loads(pickle.dumps(PredictJob(str(tiny_folder), top_k=2)))
    rows = pandas.DataFrame({"id": range(len(RECORDS)), "text_a": [r.get("text_a") for r in RECORDS]})
    frames = list(pandas_function(job)(iter([rows[:30], rows[30:]])))
    actual = pandas.concat(frames)
    assert list(actual.columns) == ["id", "text_a", "answer", "error"] and list(actual["id"]) == list(range(40))
    options = ["--model", str(tiny_folder), "--input", str(source / "in.jsonl"), "--top-k", "2", "--quiet"]
    main(["predict", *options, "--output", str(tmp_path / "one.jsonl")])
    expected = [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()]
    for answer, error, one in zip(actual["answer"], actual["error"], expected):
        assert (error is not None) == ("error" in one)
        if error is None:
            assert_near(json.loads(answer), one)


def assert_near(actual, expected):
    """Batches of other rows have other padding, which changes the last digits."""
    assert actual["tokens"] == expected["tokens"]
    for one, other in zip(actual["masks"], expected["masks"], strict=True):
        shares = [[p["probability"] for p in mask["predictions"]] for mask in (one, other)]
        np.testing.assert_allclose(*shares, rtol=1e-5)


def test_sparks_function_gives_task_predictions_and_vectors(tasks, tiny_folder):
    rows = pandas.DataFrame({"text": ["the cat", None, "far"], "n": [1.0, float("nan"), 2.0]})
    (actual,) = pandas_function(TaskJob(str(tasks / "classes"), reading=(("text_column", "text"),)))(iter([rows]))
    assert [error is None for error in actual["error"]] == [True, False, True]
    assert "label" in json.loads(actual["answer"][0])
    for column in ("text", None):
        job = FeaturesJob(str(tiny_folder), text_column=column)
        (vectors,) = pandas_function(job)(iter([rows.iloc[[0, 2]]]))
        assert [len(vector) for vector in vectors["vector"]] == [32, 32]
    with pytest.raises(DataError, match="The row: no column with the text was found; its columns are n;"):
        list(pandas_function(job)(iter([rows[["n"]]])))


def test_spark_gives_positions_to_mask_as_floats_where_one_is_null(tiny_folder):
    rows = pandas.DataFrame({"text_a": ["the cat sat", "the [MASK]"], "mask": [2, None]})
    (actual,) = pandas_function(PredictJob(str(tiny_folder)))(iter([rows]))
    assert actual["error"].isna().all()
    assert [json.loads(answer)["masks"][0]["position"] for answer in actual["answer"]] == [2, 2]
