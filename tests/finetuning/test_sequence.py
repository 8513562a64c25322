"""Sentence tasks of every kind are learned; the finished folder measures, predicts and reports."""

import csv
import json

import numpy as np
import pytest

import bert_tf
from bert_tf.cli import main
from bert_tf.finetuning.data.tables import read_records
from bert_tf.finetuning.report import write_findings
from bert_tf.finetuning.task_model import TaskModel
from bert_tf.finetuning.task_network import network_over
from bert_tf.finetuning.task_settings import POOLINGS, TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.finetuning.tasks.task import ErrorAnalysis
from bert_tf.runtime import Runtime
from tests.finetuning.conftest import (
    QUICK,
    finetune,
    make_set,
    sentence,
)


def several_labels(rng):
    chosen = [word for word in ("big", "red", "blue") if rng.random() < 0.5]
    return {"text": sentence(rng, *chosen), "label": "|".join(chosen)}


def number(rng):
    value = rng.randint(0, 2)
    return {"text": sentence(rng, *["big"] * value), "label": value}


def pair(rng):
    words = rng.choice([("big", "big"), ("big", "small"), ("small", "big"), ("small", "small")])
    return {
        "sentence1": words[0],
        "sentence2": f"{words[1]} {sentence(rng)}",
        "label": "second big" if words[1] == "big" else "second small",
    }


@pytest.mark.parametrize(
    "make, options, metric, chance",
    [
        (several_labels, ["--multi-label", "--pooling", "max"], "all_labels_right", 0.4),
        (number, ["--regression", "--pooling", "mean"], "pearson", 0.4),
        (pair, ["--pooling", "attention"], "accuracy", 0.7),
    ],
)
def test_each_kind_learns_a_small_set_and_beats_chance_on_a_held_one(
    start_folder, tmp_path, capsys, make, options, metric, chance
):
    train, held = make_set(tmp_path, make)
    output = tmp_path / "model"
    assert (
        finetune(
            "classify",
            "--model",
            start_folder,
            "--train",
            train,
            "--dev",
            train,
            "--output",
            output,
            "--epochs",
            22,
            "--metric",
            metric,
            *QUICK,
            *options,
        )
        == 0
    )
    scores = {}
    for name, path in (("train", train), ("held", held)):
        capsys.readouterr()
        assert main(["evaluate", "classify", "--model", str(output), "--data", str(path), "--json", "--quiet"]) == 0
        scores[name] = json.loads(capsys.readouterr().out)[metric]
    assert scores["train"] >= (0.98 if metric == "pearson" else 1.0), scores
    assert scores["held"] > chance, scores


def test_a_classifier_with_the_pooler_learns_its_set(trained):
    folder, train, held = trained
    task = bert_tf.load(folder).task
    for path in (train, held):
        rows = list(csv.DictReader(open(path, encoding="utf-8")))
        actual = [one["label"] for one in task.predict([row["text"] for row in rows])]
        assert actual == [row["label"] for row in rows]


def test_the_report_says_what_was_measured(trained):
    folder, _, held = trained
    metrics = json.loads((folder / "report" / "metrics.json").read_text())
    assert metrics["dev"]["accuracy"] == 1.0 and metrics["train_examples"] == 160
    page = (folder / "report" / "report.html").read_text()
    assert "http-equiv" not in page and "<script src" not in page and "cdn.plot.ly" not in page.split("<script")[0]
    for title in ("How it learned", "What it confuses", "Label by label"):
        assert f"<h2>{title}</h2>" in page
    for name in ("learning_curve", "confusion", "labels"):
        assert (folder / "report" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    card = (folder / "README.md").read_text()
    assert "accuracy | 1.0000" in card and "little" in card


def test_measuring_writes_a_report_where_asked(trained, tmp_path, capsys):
    folder, _, held = trained
    mixed = tmp_path / "mixed.csv"
    mixed.write_text(held.read_text(encoding="utf-8") + "a big <b>dog</b>,little\n", encoding="utf-8")
    command = ["evaluate", "classify", "--model", str(folder), "--data", str(mixed), "--quiet"]
    assert main([*command, "--report", str(tmp_path / "report")]) == 0
    output = capsys.readouterr().out
    assert "accuracy" in output and "0.9756" in output
    metrics = json.loads((tmp_path / "report" / "metrics.json").read_text())
    assert metrics["dev"]["accuracy"] == pytest.approx(40 / 41)
    worst = list(csv.DictReader(open(tmp_path / "report" / "errors.csv", encoding="utf-8")))
    assert [(row["expected"], row["found"], row["where"]) for row in worst] == [
        ("little", "large", "mixed.csv line 42")
    ]
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;dog&lt;/b&gt;" in page and "<b>dog" not in page


def test_a_report_leaves_nothing_of_an_earlier_one(tmp_path):
    metrics = {"task": "classify", "metric": "accuracy", "dev": {"accuracy": 0.5}}
    actual = ErrorAnalysis(
        confusion=(("a", "b"), [[1, 0], [0, 1]]),
        per_label=[{"label": "a", "precision": 1.0, "recall": 1.0, "f1": 1.0, "examples": 1}],
        worst=[{"text": "the cat", "expected": "a", "found": "b"}],
    )
    records = [{"step": 1, "loss": 1.0}], [{"step": 1, "epoch": 1.0, "dev": {"accuracy": 0.5}, "best": True}]
    (tmp_path / "notes.txt").write_text("mine")
    own = {"notes.txt", "metrics.json", "report.html"}
    write_findings(tmp_path, metrics, actual, records)
    more = {"errors.csv", "learning_curve.png", "confusion.png", "labels.png"}
    assert {path.name for path in tmp_path.iterdir()} == own | more
    write_findings(tmp_path, metrics, ErrorAnalysis())
    assert {path.name for path in tmp_path.iterdir()} == own


def test_the_explorer_can_open_a_fine_tuned_model(trained):
    bert = bert_tf.load(trained[0])
    trace = bert.trace("the big cat")
    assert trace.attentions.shape[0] == bert.config.num_hidden_layers and "mlm" not in bert.heads


def test_predictions_of_many_keep_their_order_and_tell_of_bad_ones(trained):
    task = bert_tf.load(trained[0]).task
    inputs = [
        {"text": "big cat"},
        ValueError("line 2 is broken"),
        "the small dog sat",
        {"text": ""},
        "\ud800 a",
        "big",
        OSError("line 7 cannot be read"),
        ("big", None, "small"),
    ]
    actual = list(task.predict_many(inputs, batch_size=2, errors="return"))
    assert [one["label"] if isinstance(one, dict) else "bad" for one in actual] == [
        "large",
        "bad",
        "little",
        "bad",
        "bad",
        "large",
        "bad",
        "bad",
    ]
    assert "not 3 texts" in str(actual[-1])
    assert sum(actual[0]["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def test_inputs_without_an_error_are_encoded_once(trained, monkeypatch):
    task, counts = bert_tf.load(trained[0]).task, []
    encode = task.task_type.encode

    def counted(examples, *rest):
        counts.append(len(examples))
        return encode(examples, *rest)

    monkeypatch.setattr(task.task_type, "encode", counted)
    texts = ["big", "the small dog", "a big red cat"]
    answers = list(task.predict_many([*texts, ValueError("line 4 is broken")], errors="return"))
    assert [one["label"] for one in answers[:3]] == [one["label"] for one in task.predict(texts)]
    assert counts == [3, 3] and isinstance(answers[3], ValueError)


def test_padding_and_company_do_not_change_a_prediction(trained):
    task = bert_tf.load(trained[0]).task
    texts = ["big", "the small dog sat on the mat in the park", "a big red cat"]
    together = task.predict(texts)
    alone = [task.predict([text])[0] for text in texts]
    np.testing.assert_allclose(
        [one["probability"] for one in together], [one["probability"] for one in alone], atol=1e-5
    )


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_and_company_change_nothing_in_any_pooling(tiny_bert, pooling):
    settings = TaskSettings("classify", regression=True, pooling=pooling, max_length=32)
    network = network_over(tiny_bert.model, task_type("classify"), settings)
    for variable in network.head.named_variables().values():
        variable.assign(np.random.default_rng(0).normal(0, 1, variable.shape))
    task = TaskModel(settings, network, tiny_bert.tokenizer, Runtime(network.bert))
    texts = ["big", "the small dog sat on the mat in the park", "a big red cat"]
    together = [one["value"] for one in task.predict(texts)]
    alone = [task.predict([text])[0]["value"] for text in texts]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.ptp(alone) > 0.01


def test_a_file_is_predicted_line_by_line(trained, tmp_path, capsys):
    folder, _, held = trained
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    lines = open(held, encoding="utf-8").read().splitlines()[:5]
    source.write_text("\n".join([*lines, "one field too many,large,x", "the big cat,large"]), encoding="utf-8")
    assert main(["predict", "--model", str(folder), "--input", str(source), "--output", str(target)]) == 3
    rows = list(csv.DictReader(open(target, encoding="utf-8")))
    assert len(rows) == 6 and rows[-1]["predicted_label"] == "large" and rows[0]["text"] == lines[1].split(",")[0]
    assert "line 6: 3 fields, where 2 are expected" in rows[4]["error"]
    assert "1 bad row." in capsys.readouterr().err


def predict_file(folder, source, target):
    return main(["predict", "--model", str(folder), "--input", str(source), "--output", str(target), "--quiet"])


def test_bad_rows_before_the_first_good_one_wait_for_its_columns(trained, tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes(b'text,n\n"a"b,1\n,2\na big dog,3\n\xff,4\na small cat,5\n')
    assert predict_file(trained[0], source, target) == 3
    with open(target, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["n"] for row in rows] == ["", "2", "3", "", "5"]
    assert [row["label"] for row in rows] == ["", "", "large", "", "little"]
    assert [row["error"][-20:] == "" for row in rows] == [False, False, True, False, True]


def test_so_many_bad_rows_at_the_beginning_are_not_kept(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bert_tf.cli.predict_task._MOST_WAITING", 2)
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text\n" + '""\n' * 3 + "a big dog\n")
    assert predict_file(trained[0], source, target) == 2
    assert "The first 2 rows cannot be answered" in capsys.readouterr().err and not target.exists()


def test_columns_of_the_input_stay_beside_the_prediction(trained, tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text,label,predicted_label\na big dog,mine,older\n")
    assert predict_file(trained[0], source, target) == 0
    with open(target, encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["label"], row["predicted_label"], row["predicted_predicted_label"]) == ("mine", "older", "large")


def test_a_tsv_file_of_predictions_is_read_back_as_it_was(trained, tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.tsv"
    texts = ['say "big" dog', "a big\tdog\nsat", '"big']
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    assert predict_file(trained[0], source, target) == 0
    rows = [row for _, row in read_records(target)]
    assert [row["text"] for row in rows] == ['say "big" dog', "a big dog sat", '"big']
    assert [row["label"] for row in rows] == ["large"] * 3
    assert json.loads(rows[0]["probabilities"])["large"] > 0.5


def test_the_input_is_not_written_over_by_another_name(trained, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.jsonl").write_text('{"text": "a big dog"}\n')
    assert predict_file(trained[0], "data.jsonl", "./data.jsonl") == 2
    assert "same file" in capsys.readouterr().err
    assert (tmp_path / "data.jsonl").read_text() == '{"text": "a big dog"}\n'


def test_columns_of_other_names_are_predicted_too(trained, tmp_path, capsys):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("text,review\n1,the big cat\n2,the small cat\n")
    options = ["predict", "--model", str(trained[0]), "--input", str(source), "--output", str(target), "--quiet"]
    assert main([*options, "--text-column", "review"]) == 0
    with open(target, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["text"], row["review"], row["label"]) for row in rows] == [
        ("1", "the big cat", "large"),
        ("2", "the small cat", "little"),
    ]
    assert "text_a" not in rows[0]
    assert main([*options, "--text-column", "words"]) == 2
    assert "no column 'words'; its columns are text, review." in capsys.readouterr().err


def test_one_text_is_predicted_from_the_command_line(trained, capsys):
    assert main(["predict", "a big dog", "--model", str(trained[0]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == "large"
    assert main(["predict", "a big dog", "--model", str(trained[0])]) == 0
    assert "label: large" in capsys.readouterr().out


@pytest.mark.parametrize(
    "argv, output",
    [
        (["evaluate", "tag", "--model", "{model}", "--data", "x"], "fine-tuned for 'classify', not 'tag'"),
        (["evaluate", "classify", "--model", "{start}", "--data", "x"], "not fine-tuned for any task"),
        (
            ["predict", "a", "--mask", "b", "--model", "{model}"],
            "--mask, --target, --top-k and --trace go with a model that predicts masks",
        ),
        (["predict", "--model", "{model}"], "Give a text to predict for"),
        (["predict", "a", "--model", "{model}", "--output", "x.jsonl"], "--output goes with --input"),
        (
            ["finetune", "classify", "--model", "{start}", "--train", "/no/file.csv", "--output", "/tmp/x"],
            "/no/file.csv",
        ),
        (["finetune", "sing", "--model", "x"], "invalid choice: 'sing'"),
    ],
)
def test_mistakes_are_told_in_one_line(trained, start_folder, capsys, argv, output):
    argv = [part.format(model=trained[0], start=start_folder) for part in argv]
    assert main(argv) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and output in lines[0]
