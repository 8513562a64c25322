"""Files without end and pipes that stay open: read as far as is needed, answered as it comes."""

import io
import itertools
import json
import os
import sys
import threading

import pytest

from bert_tf.cli import main
from bert_tf.errors import DataError
from bert_tf.finetuning.data.labelled_sentences import labelled_words_or_errors
from bert_tf.runtime import read_ahead
from tests.app.random_task_models import save_tasks
from tests.finetuning.test_commands import run


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    home = tmp_path_factory.mktemp("streaming")
    save_tasks(home)
    return home / "tags"


def test_the_words_of_a_pipe_are_there_while_it_is_written(tmp_path):
    pipe = tmp_path / "words.conll"
    os.mkfifo(pipe)
    may_end = threading.Event()

    def write():
        with open(pipe, "w") as file:
            file.write("the\ncat\n\nit\n\n")
            file.flush()
            may_end.wait(60)
            file.write("ran\n")

    threading.Thread(target=write, daemon=True).start()
    actual = labelled_words_or_errors(pipe, labelled=False)
    assert next(actual)[1].words == ("the", "cat") and next(actual)[1].words == ("it",)
    may_end.set()
    assert [(line, one.words) for line, one in actual] == [(6, ("ran",))]


def test_a_document_is_joined_when_the_next_begins(tmp_path):
    (tmp_path / "a.conll").write_text("the\n\n-DOCSTART- O\n\na\nb c d e f\n\ncat\n\nsat\n-DOCSTART-\nran\n\nit\n")
    actual = labelled_words_or_errors(tmp_path / "a.conll", labelled=False, documents=True)
    (first, the), (second, bad), (third, sat), (fourth, ran) = actual
    assert (first, second, third, fourth) == (1, 5, 8, 12)
    assert the.words == ("the",) and sat.words == ("cat", "sat") and ran.words == ("ran", "it")
    assert isinstance(bad, DataError) and "line 6: 5 columns" in str(bad)
    (tmp_path / "a.conllu").write_text(
        "# newdoc id = a\n\n# sent_id = 1\n1\tthe"
        + "\t_" * 8
        + "\n\n1\tcat"
        + "\t_" * 8
        + "\n\n# newdoc\n1\tran"
        + "\t_" * 8
    )
    actual = labelled_words_or_errors(tmp_path / "a.conllu", labelled=False, documents=True)
    assert [(line, one.words) for line, one in actual] == [(3, ("the", "cat")), (8, ("ran",))]


def test_a_sentence_that_cannot_be_read_is_told_in_its_place(tagger, tmp_path, capsys):
    (tmp_path / "in.conllu").write_bytes(
        b"1\tthe" + b"\t_" * 8 + b"\n\n1\tcat\n\n1\tcaf\xe9" + b"\t_" * 8 + b"\n\n# text\n1\tit" + b"\t_" * 8 + b"\n"
    )
    code, out, err = run(capsys, "predict", "--model", tagger, "--input", tmp_path / "in.conllu", "--quiet")
    first, second, third, fourth = map(json.loads, out.splitlines())
    assert code == 3 and first["words"] == ["the"] and fourth["words"] == ["it"]
    assert second["line"] == 3 and "Line 3 has 2 fields" in second["error"]
    assert third["line"] == 5 and "not UTF-8" in third["error"]
    assert err.splitlines()[-1] == "2 answered, 2 bad rows."


def test_questions_of_a_squad_file_are_answered_without_its_answers(tagger, tmp_path, capsys):
    asked = [{"id": name, "question": "the city"} for name in "ab"]
    paragraphs = [{"context": "the cat ran", "qas": asked}]
    (tmp_path / "in.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    model = tagger.parent / "answers"
    code, out, _ = run(capsys, "predict", "--model", model, "--input", tmp_path / "in.json", "--quiet")
    assert code == 0 and [json.loads(line)["id"] for line in out.splitlines()] == ["a", "b"]


def test_a_task_model_reads_only_a_window_ahead(tagger, monkeypatch):
    import bert_tf

    monkeypatch.setattr(read_ahead, "BATCHES_PER_WINDOW", 2)
    taken = itertools.count()
    endless = (f"the cat {next(taken)}" for _ in itertools.repeat(None))
    answers = bert_tf.load(tagger).task.predict_many(endless, batch_size=3)
    for _ in range(7):
        next(answers)
    assert next(taken) == 12


def test_a_task_model_reports_its_progress_after_each_pass(tagger, monkeypatch):
    import bert_tf

    monkeypatch.setattr(read_ahead, "BATCHES_PER_WINDOW", 4)
    texts = ["the cat sat there " * (1 + number % 3) for number in range(20)]
    done = []
    task = bert_tf.load(tagger).task
    assert list(task.predict_many(texts, batch_size=4, progress=done.append)) == task.predict(texts, batch_size=4)
    # Windows of 16 and 4: four passes and one, the short texts first, each by its share of the tokens.
    assert len(done) == 5 and done == sorted(done) and 0 < done[0] < 4 and done[3:] == [16, 20]


@pytest.mark.parametrize(
    "model, options, asked, key",
    [
        ("tagger", (), ['{"text": "the cat"}\n', '{"text": "it ran"}\n'], "words"),
        ("tagger", ("--format", "conll"), ["the\ncat\n\n", "it\nran\n\n"], "words"),
        ("start_folder", (), ['{"text_a": "the [MASK]"}\n', '{"text_a": "it [MASK]"}\n'], "tokens"),
    ],
    ids=["JSON lines", "CoNLL", "masks"],
)
def test_each_line_of_an_open_pipe_is_answered_as_it_comes(request, monkeypatch, model, options, asked, key):
    (requests, ask), (answers, answer) = os.pipe(), os.pipe()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(requests, "rb")))
    monkeypatch.setattr(sys, "stdout", os.fdopen(answer, "w"))
    folder = request.getfixturevalue(model)
    codes = []
    argv = ["predict", "--model", str(folder), "--input", "-", "--batch-size", "1", "--quiet", *options]
    asking = threading.Thread(target=lambda: codes.append(main(argv)), daemon=True)
    asking.start()
    with os.fdopen(ask, "w") as questions, os.fdopen(answers) as lines:
        for question, first in zip(asked, ("the", "it")):
            questions.write(question)
            questions.flush()
            assert first in json.loads(lines.readline())[key]
        questions.close()
        asking.join(60)
    assert codes == [0]
