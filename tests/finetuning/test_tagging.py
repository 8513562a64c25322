"""The family `tag`: pieces and labels, windows, decoding, learning a made set, scores."""

from pathlib import Path

import numpy as np
import pytest

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.data.labelled_sentences import LabelledSentence
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.token_classification import TASK
from tests.finetuning.small_datasets import (
    options,
    scored,
    sentences,
    train,
)

PLACES = {"river", "bank", "park"}
TAGS = {"crf": False, "pieces": "first", "stride": None}


def places(seed, count):
    """Sentences whose runs of place words are one entity each, and "money" another."""
    made, rng = [], np.random.default_rng(seed)
    for words in sentences(seed, count):
        words = [str(rng.choice(sorted(PLACES))) if rng.random() < 0.3 else word for word in words]
        labels = []
        for word, before in zip(words, [None, *words]):
            within = word in PLACES and before in PLACES
            labels.append("I-LOC" if within else "B-LOC" if word in PLACES else "B-SUM" if word == "money" else "O")
        made.append(LabelledSentence(tuple(words), tuple(labels)))
    return made


@pytest.fixture(scope="module", params=[False, True], ids=["softmax", "crf"])
def tagger(request, tiny_bert):
    examples = places(0, 64)
    settings = TASK.settings(options(**{**TAGS, "crf": request.param}), examples)
    return train(TASK, tiny_bert, examples, settings)


def test_it_learns_a_made_set_and_beats_chance_on_other_sentences(tagger):
    assert scored(tagger, places(0, 64))["f1"] == 1
    held = scored(tagger, places(1, 40))
    # Without looking, the best guess is that there is no entity: F1 0.
    assert held["f1"] > 0.6 and held["accuracy"] > 0.9


def test_spans_are_those_of_the_users_own_text(tagger):
    text = "the  cat ran in  park river was  big"
    (actual,) = tagger.predict([text])
    assert actual["text"] == text
    assert (
        [text[start:end] for start, end in actual["spans"]]
        == actual["words"]
        == ("the cat ran in park river was big".split())
    )
    (entity,) = actual["entities"]
    assert entity["type"] == "LOC" and text[entity["start"] : entity["end"]] == entity["text"] == "park river"
    assert 0 < entity["probability"] <= 1


def test_long_documents_are_read_in_windows(tagger):
    words = [word for one in places(2, 40) for word in one.words]
    document = LabelledSentence(tuple(words), None)
    rows = TASK.encode([document], tagger._tokenizer, tagger.settings)
    assert len(rows) > 5 and max(rows.lengths) <= tagger.settings.max_length
    (actual,) = tagger.predict([document])
    assert len(actual["labels"]) == len(words)
    assert (
        np.mean([(label != "O") == (word in PLACES | {"money"}) for word, label in zip(words, actual["labels"])]) > 0.9
    )


def test_labels_stand_on_the_first_piece_or_on_all(tiny_bert):
    examples = [LabelledSentence(("bank", "parking", "the"), ("B-LOC", "I-LOC", "O"))]
    assert [len(ids) for ids in tiny_bert.tokenizer.batch_ids(examples[0].words)] == [1, 2, 1]
    first, whole = (
        TASK.encode(
            examples, tiny_bert.tokenizer, TASK.settings(options(**{**TAGS, "pieces": pieces}), examples), True
        ).sequences
        for pieces in ("first", "all")
    )
    assert list(first["label_weights"][0]) == [0, 1, 1, 0, 1, 0]
    assert list(whole["label_weights"][0]) == [0, 1, 1, 1, 1, 0]
    assert list(whole["labels"][0]) == [0, 1, 2, 2, 0, 0]  # O, B-LOC, I-LOC: the entity goes on


def test_labels_can_weigh_more_or_less(tiny_bert):
    examples = [LabelledSentence(("bank", "the", "the", "the"), ("B-A", "O", "O", "O"))]
    plain = TASK.settings(options(**TAGS), examples)

    def weights(text):
        settings = TASK.training_settings(options(**TAGS, class_weights=text), examples, plain)
        rows = TASK.encode(examples, tiny_bert.tokenizer, settings, True)
        return list(rows.sequences["label_weights"][0])

    assert weights(None) == [0, 1, 1, 1, 1, 0]
    assert weights("O=0.5,B-A=3") == [0, 3, 0.5, 0.5, 0.5, 0]
    # Four words, three labels (O, B-A, I-A): each word of a label that occurs n times counts 4 / 3n.
    assert weights("balanced") == pytest.approx([0, 4 / 3, 4 / 9, 4 / 9, 4 / 9, 0])
    for wrong in ("X=1", "O", "O=-1", "O=nan"):
        with pytest.raises(TaskError, match="--class-weights has"):
            weights(wrong)
    with pytest.raises(TaskError, match="leave one of them"):
        TASK.training_settings(options(crf=True, class_weights="balanced"), examples, plain)


def test_a_word_of_300_characters_and_one_of_nothing(tiny_bert):
    examples = [LabelledSentence(("x" * 300, "\x07", "cat"), ("B-A", "O", "B-B"))]
    rows = TASK.encode(examples, tiny_bert.tokenizer, TASK.settings(options(**TAGS), examples), True)
    unknown = tiny_bert.tokenizer.unk_id
    assert list(rows.sequences["token_ids"][0][1:3]) == [unknown, unknown]
    assert rows.sequences["label_weights"][0].sum() == 3


def test_pieces_are_those_of_the_running_text_for_every_tokenizer(tiny_bert):
    from bert_tf.tokenizers import read_tokenizer

    golden = Path(__file__).parents[1] / "golden" / "family"
    example = LabelledSentence(("the", "cat", "sat", "on"), None)
    settings = TaskSettings("tag", ("A", "B"), max_length=32)
    others = [read_tokenizer(golden / name) for name in ("roberta", "albert")]
    for tokenizer in (tiny_bert.tokenizer, *others):
        (row,) = TASK.encode([example], tokenizer, settings).sequences["token_ids"]
        assert list(row) == list(tokenizer.encode(example.text).token_ids)


def test_labels_that_training_never_saw_count_as_wrong(tagger):
    example = LabelledSentence(("the", "cat"), ("O", "B-ANIMAL"), "/home/somebody/words.conll, line 7")
    assert scored(tagger, [example])["accuracy"] == 0.5
    TASK.check([example], tagger.settings)
    findings = TASK.findings([example], tagger.predict([example]), tagger.settings)
    assert [row["source"] for row in findings.worst] == ["words.conll, line 7"]
    names, counts = findings.confusion
    assert names[-1] == "B-ANIMAL" and counts[-1].sum() == 1


@pytest.mark.parametrize(
    "labels, predicted",
    [
        (("B-LOC", "I-LOC", "I-PER", "O"), ["I-PER", "I-PER", "O", "I-LOC", "B-LOC"]),
        (("O", "B-PER", "I-PER", "E-PER", "S-LOC"), ["B-PER", "E-PER", "O", "S-LOC", "S-LOC"]),
    ],
)
def test_labels_of_another_scheme_are_measured_in_bio(labels, predicted):
    settings = TaskSettings("tag", labels)
    example = LabelledSentence(("Ada", "Lovelace", "in", "Paris", "Texas"), ("B-PER", "I-PER", "O", "B-LOC", "B-LOC"))
    prediction = {"labels": predicted, "probabilities": [0.9] * 5}
    scores = TASK.score([example], [prediction], settings)
    assert scores["accuracy"] == scores["f1"] == 1
    findings = TASK.findings([example], [prediction], settings)
    names, counts = findings.confusion
    assert names == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"] and findings.worst == []
    assert counts.tolist() == np.diag([1, 2, 0, 1, 1]).tolist()


def test_a_faulty_label_of_bio_counts_as_wrong_for_its_word():
    example = LabelledSentence(("Ada", "sings"), ("B-PER", "O"))
    prediction = {"labels": ["I-PER", "O"], "probabilities": [0.9] * 2}
    scores = TASK.score([example], [prediction], TaskSettings("tag", ("O", "B-PER", "I-PER")))
    assert scores["accuracy"] == 0.5 and scores["f1"] == 1


def test_scores_equal_seqeval_and_scikit_learn():
    from seqeval.metrics import f1_score, precision_score, recall_score
    from sklearn.metrics import accuracy_score

    from bert_tf.finetuning.metrics.token_metrics import per_label, tag_scores

    true, actual = [["B-A", "I-A", "O", "B-B"], ["O", "B-B"]], [["B-A", "O", "B-A", "B-B"], ["B-B", "O"]]
    scores = tag_scores(true, actual, True)
    assert scores["f1"] == f1_score(true, actual) == pytest.approx(2 / 7)
    assert scores["precision"] == precision_score(true, actual) == pytest.approx(1 / 4)
    assert scores["recall"] == recall_score(true, actual) == pytest.approx(1 / 3)
    assert scores["accuracy"] == accuracy_score(sum(true, []), sum(actual, [])) == pytest.approx(1 / 3)
    assert {row["label"]: row["f1"] for row in per_label(true, actual, True)} == {"A": 0, "B": 0.5}
    plain = tag_scores([["X", "Y", "Y"]], [["X", "Y", "X"]], False)
    assert plain["accuracy"] == pytest.approx(2 / 3) and plain["f1"] == pytest.approx(2 / 3)


def test_a_file_without_a_label_of_the_model_is_refused():
    settings = TaskSettings("tag", ("O", "B-LOC", "I-LOC"))
    for labels in (("O", "O"), ("O", "B-SUM"), ("B-LOC", "B-SUM")):
        TASK.check([LabelledSentence(("a", "b"), labels, "in.conll, line 1")], settings)
    with pytest.raises(DataError, match=r"in.conll, line 1: none of the file's labels \(B-SUM, x\).*: O, B-LOC, I-LOC"):
        TASK.check([LabelledSentence(("a", "b"), ("B-SUM", "x"), "in.conll, line 1")], settings)


def test_labels_named_as_rows_of_scikit_learn_s_report_are_in_the_table():
    from bert_tf.finetuning.metrics.token_metrics import per_label

    rows = per_label([["accuracy", "macro avg", "b"]], [["accuracy", "b", "b"]], False)
    assert [row["label"] for row in rows] == ["accuracy", "b", "macro avg"]
    assert [(row["precision"], row["recall"], row["support"]) for row in rows] == [(1, 1, 1), (0.5, 1, 1), (0, 0, 1)]
    assert all(type(row["support"]) is int and type(row["f1"]) is float for row in rows)


def test_entities_of_random_labels_have_the_scores_of_seqeval():
    from seqeval.metrics import classification_report

    from bert_tf.finetuning.metrics.token_metrics import per_label, tag_scores

    rng = np.random.default_rng(0)
    for _ in range(200):
        names = rng.choice(["O", "B-A", "I-A", "B-B", "I-B", "I-C"], rng.integers(1, 7), replace=False)
        lengths = rng.integers(1, 9, rng.integers(1, 5))
        true, actual = ([list(map(str, rng.choice(names, length))) for length in lengths] for _ in range(2))
        if not any(label != "O" for labels in (*true, *actual) for label in labels):
            continue  # seqeval's report has no averages then
        report = classification_report(true, actual, output_dict=True, zero_division=0)
        scores = tag_scores(true, actual, True)
        for name, key in (("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")):
            assert scores[name] == pytest.approx(report["micro avg"][key], abs=1e-12)
        rows = {row.pop("label"): row for row in per_label(true, actual, True)}
        assert list(rows) == [label for label in report if not label.endswith(" avg")]
        for label, row in rows.items():
            expected = {**report[label], "f1": report[label]["f1-score"]}
            assert row == pytest.approx({name: float(expected[name]) for name in row}, abs=1e-12)


@pytest.mark.parametrize(
    "record, message",
    [
        ({"text": "  "}, "empty"),
        ({}, r'Give a "text", .* both are missing or null \(found: nothing\)'),
        ({"text": None}, r"both are missing or null \(found: text\)"),
        ({"text": 7}, '"text" is 7, which is no text'),
        ({"words": []}, "not empty"),
        ({"words": [1]}, "strings"),
    ],
)
def test_records_that_cannot_be_read(tagger, record, message):
    with pytest.raises(DataError, match=message):
        tagger.predict([record])


@pytest.mark.parametrize("alone", ["the cat", {"text": "the cat"}])
def test_one_input_in_the_place_of_a_list_is_refused(tagger, alone):
    with pytest.raises(DataError, match="Give a list of inputs, such as .*the cat.*, not one alone"):
        tagger.predict(alone)


def test_settings_that_do_not_go_together():
    examples = places(0, 4)
    with pytest.raises(TaskError, match="--crf scores words"):
        TASK.settings(options(crf=True, pieces="all", stride=None), examples)
    with pytest.raises(TaskError, match="--pieces is 'last'"):
        TASK.settings(options(crf=False, pieces="last", stride=None), examples)
    with pytest.raises(DataError, match="cannot move by 47"):
        TASK.settings(options(**{**TAGS, "stride": 47}), examples)
    with pytest.raises(DataError, match="training needs at least two labels"):
        TASK.settings(options(**TAGS), [LabelledSentence(("a",), ("O",))])
