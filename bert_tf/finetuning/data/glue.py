"""The tasks of GLUE (Wang et al. 2019): how their files look, what their labels mean, what they are scored
by."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GlueTask:
    """One task.

    Attributes:
        texts: names of its one or two text columns. label: of its label column.
        names: label in the file -> name; empty for regression. metric: the score that counts.
        headerless: the columns of its files without a header line, each possible number of fields once.
    """

    texts: tuple
    label: str
    names: dict
    metric: str = "accuracy"
    headerless: tuple = ()

    @property
    def regression(self):
        return not self.names


def _same(*names):
    return {name: name for name in names}


_PAIR = ("sentence1", "sentence2")
_ENTAILED = _same("entailment", "not_entailment")

#: Name -> `GlueTask`.
GLUE = {
    "cola": GlueTask(
        ("sentence",),
        "label",
        {"0": "unacceptable", "1": "acceptable"},
        "matthews",
        (("source", "label", "star", "sentence"),),
    ),
    "sst2": GlueTask(("sentence",), "label", {"0": "negative", "1": "positive"}),
    "mrpc": GlueTask(("#1 String", "#2 String"), "Quality", {"0": "not_equivalent", "1": "equivalent"}, "f1"),
    "stsb": GlueTask(_PAIR, "score", {}, "spearman", ((*_PAIR, "score"),)),
    "qqp": GlueTask(("question1", "question2"), "is_duplicate", {"0": "not_duplicate", "1": "duplicate"}, "f1"),
    "mnli": GlueTask(_PAIR, "gold_label", _same("entailment", "neutral", "contradiction")),
    "qnli": GlueTask(("question", "sentence"), "label", _ENTAILED),
    "rte": GlueTask(_PAIR, "label", _ENTAILED),
    "wnli": GlueTask(_PAIR, "label", {"0": "not_entailment", "1": "entailment"}),
}
