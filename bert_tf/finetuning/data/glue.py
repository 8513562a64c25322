"""The tasks of GLUE (Wang et al. 2019): the columns of their files, their labels and their metrics."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GlueTask:
    """A task of GLUE.

    Attributes:
        texts: tuple of str. The names of the one or two text columns.
        label: str. The name of the label column.
        names: dict label in the file -> name; empty for regression.
        metric: str. The metric of the task.
        headerless: tuple of tuples of str. The columns of files without a header line, one for each number of fields.
    """

    texts: tuple
    label: str
    names: dict
    metric: str = "accuracy"
    headerless: tuple = ()

    @property
    def regression(self) -> bool:
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
