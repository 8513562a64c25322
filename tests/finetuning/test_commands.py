"""finetune, evaluate and predict for words, answers and choices by the command line."""

import csv
import json
from collections import Counter

import numpy as np
import pytest

from bert_tf.cli import main
from bert_tf.cli.finetune import checked_examples, parsed
from bert_tf.finetuning.data.labelled_sentences import LabelledSentence
from bert_tf.finetuning.data.multiple_choice_examples import MultipleChoiceExample
from bert_tf.finetuning.data.sentence_examples import SentenceExample
from bert_tf.finetuning.task_folder import save_task
from bert_tf.finetuning.task_network import network_over
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.registry import task_type
from tests.finetuning.conftest import QUICK, finetune
from tests.finetuning.small_datasets import sentences

SHORT = ["--epochs", "1", *QUICK]


def run(capsys, *arguments):
    """(exit code, standard output, standard error)"""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def conll(path, seed=0):
    """Twenty sentences whose "park" is a place."""
    path.write_text(
        "\n\n".join(
            "\n".join(f"{word}\t{'B-LOC' if word == 'park' else 'O'}" for word in [*words, "park"])
            for words in sentences(seed, 20)
        )
        + "\n"
    )
    return path


@pytest.fixture(scope="module")
def tagger(start_folder, tmp_path_factory):
    """(folder of a tagger, its training file)"""
    folder = tmp_path_factory.mktemp("tagger")
    data = conll(folder / "train.conll")
    assert (
        finetune(
            "tag",
            "--model",
            start_folder,
            "--train",
            data,
            "--dev",
            data,
            "--output",
            folder / "model",
            "--crf",
            *SHORT,
            "--epochs",
            "8",
        )
        == 0
    )
    return folder / "model", data


def test_a_tagger_is_trained_measured_and_used(tagger, capsys, tmp_path):
    folder, data = tagger
    metrics = json.loads((folder / "report" / "metrics.json").read_text())
    assert {"precision", "recall", "f1", "accuracy"} <= set(metrics["dev"])
    code, out, _ = run(capsys, "evaluate", "tag", "--model", folder, "--data", data, "--json", "--quiet")
    assert code == 0 and json.loads(out)["f1"] == pytest.approx(metrics["dev"]["f1"])
    count = metrics["dev"]["sentences"]
    assert f"\n| sentences | {count} |\n" in (folder / "README.md").read_text()
    code, out, _ = run(capsys, "evaluate", "tag", "--model", folder, "--data", data, "--quiet")
    assert code == 0 and ["sentences", str(count)] in [line.split() for line in out.splitlines()]
    code, out, _ = run(capsys, "predict", "--model", folder, "the cat ran in  the park", "--json")
    actual = json.loads(out)
    assert code == 0 and actual["spans"][-1] == [20, 24] and len(actual["labels"]) == 6
    code, out, _ = run(capsys, "predict", "--model", folder, "the cat ran in the park")
    assert code == 0 and ("LOC  park  (19 to 23" in out or "No entities." in out)
    (tmp_path / "in.jsonl").write_text('{"text": "a park"}\n{"words": ["a", "b c"]}\n{"text": ""}\n')
    code, out, err = run(capsys, "predict", "--model", folder, "--input", tmp_path / "in.jsonl", "--quiet")
    first, second, bad = map(json.loads, out.splitlines())
    assert first["words"] == ["a", "park"] and second["words"] == ["a", "b c"]
    assert bad["line"] == 3 and "empty" in bad["error"]
    (tmp_path / "in.conll").write_text("a\npark\n\nthe\n")
    code, out, _ = run(capsys, "predict", "--model", folder, "--input", tmp_path / "in.conll", "--quiet")
    assert code == 0 and [json.loads(line)["words"] for line in out.splitlines()] == [["a", "park"], ["the"]]


def test_a_share_of_the_training_file_is_kept_back():
    examples = [LabelledSentence((str(number),), ("O",)) for number in range(50)]
    train, dev = task_type("tag").split(examples, 0.1)
    assert len(dev) == 5 and sorted(train + dev, key=examples.index) == examples
    assert (train, dev) == task_type("tag").split(examples, 0.1)


def test_equal_inputs_stay_on_one_side_of_a_split():
    rng = np.random.default_rng(1)
    texts = [f"text {number}" for number in rng.integers(30, size=60)]
    for task, examples, inputs in (
        ("classify", [SentenceExample(text, target=label) for text, label in zip(texts, ["a", "b"] * 30)], "text_a"),
        ("similarity", [SentenceExample("a", text) for text in texts], "text_b"),
        ("tag", [LabelledSentence(tuple(text.split()), ("O", "O")) for text in texts], "words"),
        ("choose", [MultipleChoiceExample("a", (text, "b"), 0) for text in texts], "choices"),
    ):
        train, dev = task_type(task).split(examples, 0.2)
        assert 10 <= len(dev) <= 12 and len(train) + len(dev) == 60
        assert not {getattr(one, inputs) for one in train} & {getattr(one, inputs) for one in dev}
    cased = [SentenceExample(text) for text in ("A", "a")]
    assert len(task_type("classify").split(cased, 0.5)[1]) == 1
    assert task_type("classify").split([SentenceExample("a")] * 9, 0.5) == ([SentenceExample("a")] * 9, [])


def test_a_sample_learns_the_labels_of_the_whole_file(start_folder, tmp_path):
    (tmp_path / "train.csv").write_text("text,label\n" + "the cat,a\nthe dog,b\n" * 9 + "a park,rare\n")
    (tmp_path / "dev.csv").write_text("text,label\nthe park,rare\nthe cat,a\n")
    arguments = ["classify", "--model", str(start_folder), "--output", str(tmp_path / "out"), "--max-train", "4"]
    files = ["--train", str(tmp_path / "train.csv"), "--dev", str(tmp_path / "dev.csv")]
    train, _, settings = checked_examples(parsed([*arguments, *files, "--class-weights", "balanced"]))
    assert len(train) == 4 and {example.target for example in train} == {"a", "b"}
    assert settings.labels == ("a", "b", "rare")
    counts = Counter(example.target for example in train)
    assert settings.extra["class_weights"] == {label: 4 / (3 * count) for label, count in sorted(counts.items())}


@pytest.mark.parametrize("place", range(0, 59, 7))
def test_the_only_example_of_a_label_is_learnt_from(place):
    labels = ["good", "bad"] * 30
    labels[place] = "mixed"
    for task, examples in (
        ("classify", [SentenceExample(str(at), target=label) for at, label in enumerate(labels)]),
        ("tag", [LabelledSentence((str(at),), (label,)) for at, label in enumerate(labels)]),
    ):
        train, dev = task_type(task).split(examples, 0.2)
        assert examples[place] in train and len(dev) == 12


def test_predict_reads_files_as_training_does(tagger, start_folder, trained, capsys, tmp_path):
    folder, _ = tagger
    (tmp_path / "words.annotated").write_text("-DOCSTART-\tO\n\nthe\tO\ncat\tO\n\nsat\tO\n")
    code, out, _ = run(capsys, "predict", "--model", folder, "--input", tmp_path / "words.annotated", "--quiet")
    assert code == 0 and [len(json.loads(line)["words"]) for line in out.splitlines()] == [2, 1]
    code, out, _ = run(
        capsys, "predict", "--model", folder, "--input", tmp_path / "words.annotated", "--quiet", "--documents"
    )
    assert code == 0 and [len(json.loads(line)["words"]) for line in out.splitlines()] == [3]
    (tmp_path / "cola.tsv").write_text("gj04\t1\t\tthe big cat\ngj04\t0\t\tthe small cat\n")
    code, out, _ = run(
        capsys, "predict", "--model", trained[0], "--input", tmp_path / "cola.tsv", "--glue", "cola", "--quiet"
    )
    assert code == 0 and [json.loads(line)["label"] for line in out.splitlines()] == ["large", "little"]
    code, out, _ = run(
        capsys,
        "predict",
        "--model",
        trained[0],
        "--input",
        tmp_path / "cola.tsv",
        "--columns",
        "a,b,c,it",
        "--text-column",
        "it",
        "--quiet",
        "--output",
        tmp_path / "out.csv",
    )
    assert code == 0 and (tmp_path / "out.csv").read_text().splitlines()[1].startswith("gj04,1,,the big cat,large")
    code, _, err = run(capsys, "predict", "--model", folder, "--input", tmp_path / "cola.tsv", "--glue", "cola")
    assert (
        code == 2 and "--glue goes with a model that is fine-tuned to classify or similarity; this one to tag." in err
    )


def random_task(folder, bert, settings, bias=0.0):
    """Folder of a model with a random head."""
    network = network_over(bert.model, task_type(settings.task), settings)
    rng = np.random.default_rng(0)
    for name, variable in network.head.named_variables().items():
        variable.assign(rng.normal(0, 0.3, variable.shape) if "bias" not in name else np.full(variable.shape, bias))
    save_task(folder, bert.config, bert.tokenizer, network, settings)
    return folder


def test_choices_are_read_from_columns_of_other_names(tiny_bert, capsys, tmp_path):
    model = random_task(
        tmp_path / "model", tiny_bert, TaskSettings("choose", pair=True, max_length=32, extra={"choices": 2})
    )
    asked = [
        ("the cat", "it", "sat on a mat", "ran"),
        ("a dog", "she", "is big", "was in the river"),
        ("money", "", "red house", "ran in the park"),
    ]
    usual = tmp_path / "usual.jsonl"
    usual.write_text(
        "".join(json.dumps({"sent1": a, "sent2": b, "ending0": c, "ending1": d}) + "\n" for a, b, c, d in asked)
    )
    code, out, _ = run(capsys, "predict", "--model", model, "--input", usual, "--quiet")
    expected = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and expected[0]["text"] in ("it sat on a mat", "it ran")
    data = tmp_path / "own.csv"
    lines = [f"{a},{b},{c},{d},other,one,more,{actual['choice']}" for (a, b, c, d), actual in zip(asked, expected)]
    data.write_text("\n".join(["q,how,first,second,sent1,sent2,ending0,right", *lines]))
    names = ["--context-column", "q", "--start-column", "how", "--choice-columns"]
    code, out, _ = run(capsys, "predict", "--model", model, "--input", data, *names, "first, second", "--quiet")
    assert code == 0
    for line, one in zip(out.splitlines(), expected, strict=True):
        actual = json.loads(line)
        assert actual["text"] == one["text"] and actual["probabilities"] == pytest.approx(
            one["probabilities"], abs=1e-6
        )
    measure = ["evaluate", "choose", "--model", model, "--data", data, "--label-column", "right", "--json", "--quiet"]
    code, out, _ = run(capsys, *measure, *names, "first,second")
    assert code == 0 and json.loads(out)["accuracy"] == 1
    code, out, _ = run(capsys, *measure, *names, "second,first")
    assert code == 0 and json.loads(out)["accuracy"] == 0
    code, _, err = run(capsys, *measure, *names, "first,third")
    assert code == 2 and "own.csv line 2: there is no column 'third' (found: q, how, first, second" in err
    code, out, err = run(capsys, "predict", "--model", model, "--input", data, *names, "first,third", "--quiet")
    assert code == 2 and err.count("there is no column 'third' (found: q, how, first, second") == 1 and not out


def test_a_value_that_is_missing_leaves_its_field_empty(tiny_bert, tmp_path):
    settings = TaskSettings("answer", pair=True, max_length=64, extra={"no_answer": True, "threshold": -1000.0})
    model = random_task(tmp_path / "model", tiny_bert, settings)
    data = tmp_path / "in.jsonl"
    data.write_text('{"question": "the cat", "passage": "the dog ran", "note": null}\n')
    for ending, delimiter in (("csv", ","), ("tsv", "\t")):
        output = tmp_path / f"out.{ending}"
        assert main(["predict", "--model", str(model), "--input", str(data), "--output", str(output), "--quiet"]) == 0
        with open(output, encoding="utf-8", newline="") as file:
            (row,) = csv.DictReader(file, delimiter=delimiter)
        assert row["passage"] == "the dog ran"
        assert row["answer"] == row["start"] == row["note"] == ""


def test_words_are_read_from_a_field_of_another_name(tagger, capsys, tmp_path):
    data = tmp_path / "in.jsonl"
    data.write_text('{"tokens": ["a", "park"], "words": ["the"]}\n{"words": ["a"]}\n{"tokens": "a park"}\n')
    options = ["predict", "--model", tagger[0], "--input", data, "--quiet"]
    code, out, _ = run(capsys, *options, "--words-field", "tokens")
    good, without, text = map(json.loads, out.splitlines())
    assert code == 3 and good["words"] == ["a", "park"] and len(good["labels"]) == 2
    assert without["line"] == 2 and without["error"].endswith("There is no field 'tokens'; the fields are words.")
    assert text["line"] == 3 and "\"words\" is 'a park': give a list of strings" in text["error"]
    code, out, _ = run(capsys, *options)
    assert code == 3 and [json.loads(line).get("words") for line in out.splitlines()] == [["the"], ["a"], None]


def test_several_labels_are_parted_by_the_sign_given(tiny_bert, capsys, tmp_path):
    settings = TaskSettings("classify", ("a", "b", "c"), multi_label=True, max_length=16, metric="f1_micro")
    model = random_task(tmp_path / "model", tiny_bert, settings, bias=10.0)
    data = tmp_path / "in.csv"
    data.write_text("text,label\nthe cat,a;b;c\nthe dog,a; c\n")
    options = ["evaluate", "classify", "--model", model, "--data", data, "--json", "--quiet"]
    code, out, _ = run(capsys, *options, "--label-separator", ";")
    scores = json.loads(out)
    # The model says all three: 5 of the 6 are right, and 1 of the 2 texts.
    assert code == 0 and scores["f1_micro"] == pytest.approx(10 / 11) and scores["all_labels_right"] == 0.5
    code, _, err = run(capsys, *options)
    assert code == 2 and "in.csv line 2: the label 'a;b;c' is not one of the model's: a, b, c." in err


def test_a_second_text_is_no_part_of_a_single_one(trained, capsys):
    code, _, err = run(capsys, "predict", "--model", trained[0], "the big cat", "the small cat")
    assert code == 2 and "This model reads one text; there is a second one, 'the small cat'" in err


def test_what_is_wrong_is_told_in_one_line(tagger, start_folder, capsys, tmp_path):
    folder, data = tagger
    (tmp_path / "bad.conll").write_text("the O\ncat\n")
    tag = ["finetune", "tag", "--model", start_folder, "--train", data, "--output", tmp_path / "o"]
    for arguments, message in (
        (
            ["finetune", "tag", "--model", start_folder, "--train", tmp_path / "bad.conll", "--output", tmp_path / "o"],
            "bad.conll, line 2: 1 columns",
        ),
        (["finetune", "answer", "--model", start_folder, "--train", data, "--output", tmp_path / "o"], "is not JSON"),
        (
            [*tag, "--crf", "--pieces", "all"],
            "--crf scores words",
        ),
        (
            [*tag, "--dev-share", "1"],
            "--dev-share is 1.0",
        ),
        (
            [*tag, "--dev-share", "0.01"],
            "has too few different inputs for a --dev-share of 0.01; give a --dev file.",
        ),
        (
            [*tag, "--metric", "words"],
            "--metric is 'words'; these examples are measured by accuracy, f1, precision, recall.",
        ),
        (
            [*tag, "--patience", "2"],
            "--patience selects by the dev examples, and there are none; give --dev or --dev-share.",
        ),
        (["evaluate", "answer", "--model", folder, "--data", data], "fine-tuned for 'tag'"),
    ):
        code, _, err = run(capsys, *arguments)
        assert code == 2 and message in err and len(err.strip().splitlines()) == 1


def test_answers_are_trained_measured_and_given(start_folder, capsys, tmp_path):
    questions = [
        {
            "id": str(number),
            "question": "the city",
            "is_impossible": not number % 3,
            "answers": [{"text": "big house", "answer_start": 8}] if number % 3 else [],
        }
        for number in range(12)
    ]
    paragraphs = [{"context": "the cat big house ran", "qas": questions}]
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    data, model = tmp_path / "squad.json", tmp_path / "model"
    assert (
        finetune(
            "answer",
            "--model",
            start_folder,
            "--train",
            data,
            "--dev",
            data,
            "--output",
            model,
            *SHORT,
            "--length",
            "32",
            "--question-length",
            "8",
        )
        == 0
    )
    code, out, _ = run(capsys, "evaluate", "answer", "--model", model, "--data", data, "--json", "--quiet")
    scores = json.loads(out)
    # Nothing can be known here; the threshold that training tuned must do what is best, to answer them all.
    assert code == 0 and scores["answerable"] == 8 and scores["f1"] >= 100 / 3
    code, out, _ = run(capsys, "predict", "--model", model, "the city", "the cat big house ran", "--json")
    actual = json.loads(out)
    assert code == 0 and actual["n_best"][0]["text"] in "the cat big house ran"
    assert run(capsys, "predict", "--model", model, "the city", "the cat big house ran")[0] == 0
    code, out, _ = run(capsys, "predict", "--model", model, "--input", data, "--quiet")
    assert code == 0 and [json.loads(line)["id"] for line in out.splitlines()] == [str(n) for n in range(12)]
    code, _, err = run(capsys, "predict", "--model", model, "the city")
    assert code == 2 and "This model answers questions: give the passage as the second text." in err


def test_choices_are_trained_measured_and_made(start_folder, capsys, tmp_path):
    data, model = tmp_path / "swag.csv", tmp_path / "model"
    rows = [
        row for number in range(12) for row in (f"the cat {number},it,money,ran,0", f"the cat {number},it,ran,money,1")
    ]
    data.write_text("\n".join(["sent1,sent2,ending0,ending1,label", *rows]))
    assert (
        finetune(
            "choose",
            "--model",
            start_folder,
            "--train",
            data,
            "--dev-share",
            "0.25",
            "--output",
            model,
            *SHORT,
            "--epochs",
            "4",
        )
        == 0
    )
    code, out, _ = run(capsys, "evaluate", "choose", "--model", model, "--data", data, "--json", "--quiet")
    assert code == 0 and json.loads(out)["accuracy"] >= 0.5
    assert json.loads((model / "report" / "metrics.json").read_text())["dev_examples"] == 6
    (tmp_path / "in.jsonl").write_text('{"context": "the cat", "choices": ["it ran", "it money", "it is"]}\n')
    code, out, _ = run(capsys, "predict", "--model", model, "--input", tmp_path / "in.jsonl", "--quiet")
    assert code == 0 and len(json.loads(out)["probabilities"]) == 3
    code, out, _ = run(capsys, "predict", "--model", model, "the cat", "it ran | it money", "--json")
    assert code == 0 and json.loads(out)["text"] in ("it ran", "it money")
    code, _, err = run(capsys, "predict", "--model", model, "the cat")
    assert code == 2 and 'give the choices as the second text, "one | another"' in err
