"""Metrics and losses of sentence tasks, against scikit-learn, SciPy and PyTorch."""

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics

from bert_tf.finetuning.data.sentence_examples import SentenceExample
from bert_tf.finetuning.metrics.sequence_metrics import findings, score
from bert_tf.finetuning.report import write_findings
from bert_tf.finetuning.task_settings import TaskSettings, undefined_note
from bert_tf.finetuning.tasks.sequence_losses import SequenceLoss

RNG = np.random.default_rng(0)
LABELS = ("a", "b", "c")


def test_scores_of_one_label_are_scikit_learns():
    true, actual = (RNG.choice(LABELS, 60).tolist() for _ in range(2))
    examples = [SentenceExample("x", target=label) for label in true]
    predictions = [{"label": label, "probability": 0.5} for label in actual]
    scores = score(examples, predictions, TaskSettings("classify", LABELS))
    assert scores["accuracy"] == pytest.approx(np.mean([x == y for x, y in zip(true, actual)]))
    assert scores["f1_macro"] == pytest.approx(metrics.f1_score(true, actual, average="macro"))
    macro = metrics.precision_recall_fscore_support(true, actual, average="macro")
    assert (scores["precision_macro"], scores["recall_macro"]) == pytest.approx(macro[:2])
    assert scores["matthews"] == pytest.approx(metrics.matthews_corrcoef(true, actual))
    assert "f1" not in scores
    analysis = findings(examples, predictions, TaskSettings("classify", LABELS))
    np.testing.assert_array_equal(analysis.confusion[1], metrics.confusion_matrix(true, actual, labels=LABELS))
    assert [row["examples"] for row in analysis.per_label] == [true.count(label) for label in LABELS]


def test_labels_that_do_not_occur_do_not_count():
    examples = [SentenceExample("x", target=label) for label in ("a", "b", "a")]
    predictions = [{"label": label, "probability": 1.0} for label in ("a", "b", "a")]
    scores = score(examples, predictions, TaskSettings("classify", tuple("abcdefghij")))
    assert scores["f1_macro"] == scores["precision_macro"] == scores["recall_macro"] == scores["accuracy"] == 1


def test_the_f1_of_two_labels_is_that_of_the_second():
    true, actual = ["n", "p", "p", "p", "n"], ["p", "p", "p", "n", "n"]
    scores = score(
        [SentenceExample("x", target=one) for one in true],
        [{"label": one, "probability": 1.0} for one in actual],
        TaskSettings("classify", ("n", "p")),
    )
    assert scores["f1"] == pytest.approx(2 / 3) and scores["accuracy"] == pytest.approx(3 / 5)


def test_a_set_of_one_class_has_no_correlation_and_no_crash():
    scores = score(
        [SentenceExample("x", target="n")] * 3,
        [{"label": "n", "probability": 1.0}] * 3,
        TaskSettings("classify", ("n", "p")),
    )
    assert scores["accuracy"] == 1 and scores["matthews"] == 0 and scores["f1"] == 0


def test_scores_of_numbers_are_scipys():
    true = RNG.normal(size=30)
    actual = true + RNG.normal(size=30)
    settings = TaskSettings("classify", regression=True)
    scores = score(
        [SentenceExample("x", target=float(one)) for one in true], [{"value": float(one)} for one in actual], settings
    )
    assert scores["pearson"] == pytest.approx(stats.pearsonr(true, actual).statistic)
    assert scores["spearman"] == pytest.approx(stats.spearmanr(true, actual).statistic)
    assert scores["mean_squared_error"] == pytest.approx(metrics.mean_squared_error(true, actual))
    flat = score([SentenceExample("x", target=1.0)] * 2, [{"value": 1.0}] * 2, settings)
    assert np.isnan(flat["pearson"]) and np.isnan(flat["spearman"]) and flat["mean_squared_error"] == 0
    assert "Undefined (nan): pearson and spearman" in undefined_note(flat) and undefined_note(scores) is None


def test_the_worst_numbers_are_those_farthest_off(tmp_path):
    examples = [
        SentenceExample("a", None, 1.0, "/home/a.csv line 2"),
        SentenceExample("b", "c", 2.0, "/home/a.csv line 3"),
        SentenceExample("d", None, -1.0, "/home/a.csv line 4"),
    ]
    predictions = [{"value": 1.25}, {"value": -1.0004}, {"value": 0.0}]
    analysis = findings(examples, predictions, TaskSettings("classify", regression=True))
    assert analysis.worst == [
        {"where": "a.csv line 3", "text": "b", "second text": "c", "expected": 2.0, "found": -1.0, "off by": 3.0},
        {"where": "a.csv line 4", "text": "d", "expected": -1.0, "found": 0.0, "off by": 1.0},
        {"where": "a.csv line 2", "text": "a", "expected": 1.0, "found": 1.25, "off by": 0.25},
    ]
    write_findings(tmp_path, {"task": "classify", "metric": "spearman"}, analysis)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h2>The worst errors</h2>" in page and "<th>off by</th>" in page
    assert (tmp_path / "errors.csv").read_text(encoding="utf-8").startswith("where,text,")


def test_scores_of_several_labels_are_scikit_learns():
    true, actual = RNG.integers(0, 2, (2, 40, 3))

    def named(rows):
        return [tuple(label for label, on in zip(LABELS, row) if on) for row in rows]

    examples = [SentenceExample("x", target=labels) for labels in named(true)]
    predictions = [{"labels": list(labels), "probabilities": dict.fromkeys(LABELS, 0.5)} for labels in named(actual)]
    settings = TaskSettings("classify", LABELS, multi_label=True)
    scores = score(examples, predictions, settings)
    assert scores["f1_micro"] == pytest.approx(metrics.f1_score(true, actual, average="micro"))
    assert scores["f1_macro"] == pytest.approx(metrics.f1_score(true, actual, average="macro"))
    assert scores["all_labels_right"] == pytest.approx(np.mean([(x == y).all() for x, y in zip(true, actual)]))
    analysis = findings(examples, predictions, settings)
    assert len(analysis.worst) == sum((x != y).any() for x, y in zip(true, actual))
    columns = metrics.precision_recall_fscore_support(true, actual)
    for row, label, precision, recall, f1, count in zip(analysis.per_label, LABELS, *columns, strict=True):
        assert (row["label"], row["examples"]) == (label, count)
        assert (row["precision"], row["recall"], row["f1"]) == pytest.approx((precision, recall, f1))


@pytest.mark.parametrize(
    "actual, precision, recall, f1, right",
    [([0, 0, 0, 0], 0, 0, 0, 3 / 4), ([1, 1, 0, 0], 1 / 2, 1, 2 / 3, 3 / 4), ([1, 0, 0, 0], 1, 1, 1, 1)],
)
def test_the_only_label_of_a_multi_label_task_is_measured_where_it_is(actual, precision, recall, f1, right):
    examples = [SentenceExample("x", target=target) for target in (("x",), (), (), ())]
    predictions = [{"labels": ["x"] * on, "probabilities": {"x": float(on)}} for on in actual]
    settings = TaskSettings("classify", ("x",), multi_label=True)
    assert score(examples, predictions, settings) == pytest.approx(
        {"f1_micro": f1, "f1_macro": f1, "all_labels_right": right}
    )
    (row,) = findings(examples, predictions, settings).per_label
    assert row == {"label": "x", "precision": precision, "recall": recall, "f1": pytest.approx(f1), "examples": 1}


@pytest.mark.parametrize("kind", ["one", "several", "number"])
def test_losses_are_pytorchs_and_parts_add_up(kind):
    outputs = 1 if kind == "number" else 3
    logits = RNG.normal(size=(8, outputs)).astype("float32") * 3
    weights = np.array([1, 2, 0.5, 1, 1, 1, 0, 0], "float32")
    wanted = {
        "one": RNG.integers(0, 3, 8).astype("int32"),
        "number": RNG.normal(size=8).astype("float32"),
        "several": RNG.integers(0, 2, (8, 3)).astype("float32"),
    }[kind]
    objective = SequenceLoss(kind == "number", kind == "several")
    batch = {"targets": wanted, "weights": weights}
    tensor, goal = torch.tensor(logits), torch.tensor(wanted)
    functional = torch.nn.functional
    theirs = {
        "one": lambda: functional.cross_entropy(tensor, goal.long(), reduction="none"),
        "several": lambda: functional.binary_cross_entropy_with_logits(tensor, goal, reduction="none").mean(-1),
        "number": lambda: (tensor[:, 0] - goal) ** 2,
    }[kind]()
    expected = float((theirs * torch.tensor(weights)).sum() / weights.sum())
    assert float(objective({"logits": logits}, batch)["loss"]) == pytest.approx(expected, rel=1e-5)
    counts = objective.counts(batch)
    parts = sum(
        float(objective({"logits": logits[part]}, {name: value[part] for name, value in batch.items()}, counts)["loss"])
        for part in (slice(0, 3), slice(3, 8))
    )
    assert parts == pytest.approx(expected, rel=1e-5)
