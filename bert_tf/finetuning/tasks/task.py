"""What a task family has to say about itself; `sequence.py` is the example to read.

B batch, T tokens, N rows. An example is what one line, sentence or question of a file becomes; a row is what the
model reads at once (an example longer than the model becomes several).
"""

from argparse import Namespace
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from bert_tf.errors import TaskError
from bert_tf.finetuning.data.tables import records_or_errors


@dataclass
class ErrorAnalysis:
    """What a report shows beside the metrics.

    Attributes:
        confusion: (labels, counts [K, K]; rows the true ones) or None.
        per_label: list of dicts, a row of the table each.
        worst: list of dicts, the worst errors first. worst_errors_title: the heading over them.
    """

    confusion: tuple | None = None
    per_label: list = field(default_factory=list)
    worst: list = field(default_factory=list)
    worst_errors_title: str = "The worst errors, the surest first"


def without_folder(place):
    """File and line of an example without the file's folder: a report is handed around."""
    return place.replace("\\", "/").rpartition("/")[2]


class Task:
    """The interface; a subclass in a module of its own, whose object `FAMILY` is listed in `families.py`.

    The module itself must import no TensorFlow or Keras; `head` and `objective` do so when they are called.

    Attributes:
        task: the name on the command line and in task.json. several: an example's token ids are [C, t], C
            choices of t tokens. length: tokens an input is cut to unless another number is given.
    """

    task = ""
    several = False
    length = 128

    def add_reading_arguments(self, parser):
        """Options that say how a file is read: for training, measuring and predicting."""

    def add_training_arguments(self, parser):
        """Options that only training has."""

    def read(self, path, options, settings=None, labelled=True):
        """Yields the examples of a file.

        Args:
            path: of the file. options: parsed options (`argparse.Namespace`). settings: those of the model
                that will read them, None before there is one. labelled: False where the answers are not needed.

        Raises: DataError, OSError.
        """
        raise TypeError(f"{type(self).__name__} reads no files.")

    def example(self, record, settings):
        """An example without an answer from one JSON object (`predict`).

        Raises: DataError without file and line, which the caller adds.
        """
        raise TypeError(f"{type(self).__name__} reads no records.")

    def records(self, path, options=Namespace()):
        """Yields (number, record) of a file to predict for: number of the line, and what `example` takes, or a
        DataError in its place.

        Args: path: of the file. options: those of `add_reading_arguments`, as far as `predict` has them; what is
            missing or None goes by the file's ending and header.

        Raises: DataError, OSError.
        """
        columns = getattr(options, "columns", None)
        columns = tuple(name.strip() for name in columns.split(",")) if columns else None
        kind = getattr(options, "format", None)
        return records_or_errors(path, kind, ("text",) if kind == "lines" else columns)

    def settings(self, options, examples):
        """`TaskSettings` for training on these examples. Raises: DataError, TaskError."""
        raise TypeError(f"{type(self).__name__} trains no models.")

    def asked(self, record, options):
        """What `example` takes of a record of `records`, whose columns the options may name; or a DataError."""
        return record

    def split(self, examples, share, seed=0):
        """Two lists: the examples without about a `share` of them, and that share, drawn by chance.

        An example that is the last one of a label stays in the first list: what is not learnt cannot be measured.
        """
        left = Counter(label for example in examples for label in set(self.labels(example)))
        kept, wanted = set(), round(share * len(examples))
        for place in np.random.default_rng(seed).permutation(len(examples)).tolist():
            labels = set(self.labels(examples[place]))
            if len(kept) < wanted and all(left[label] > 1 for label in labels):
                left.subtract(labels)
                kept.add(place)
        return (
            [example for place, example in enumerate(examples) if place not in kept],
            [example for place, example in enumerate(examples) if place in kept],
        )

    def labels(self, example):
        """The labels of an example that training must have seen; none where the answers are no labels."""
        return ()

    def check(self, examples, settings):
        """Raises DataError where an example does not fit the settings (a label that training never saw)."""

    def needs_pooler(self, settings):
        """Whether the head reads the pooler's output."""
        return settings.pools_first_token and "activation" not in settings.extra

    def first_layer(self, settings, config):
        """What a head is told of the layer on the first token that it brings itself: a dict, empty for none.

        Raises: TaskError: this architecture has no such head.
        """
        activation, known = settings.extra.get("activation"), config.architecture.sentence_heads.get(self.task)
        if activation is None:
            return {}
        if known is None or known[0] != activation:
            raise TaskError(
                f"There is no head of the task {self.task!r} on a {config.architecture.title} model whose first "
                f"layer has the activation {activation!r}."
            )
        return {"hidden_act": activation, "names": known[1:]}

    def encode(self, examples, tokenizer, settings, training=False):
        """`Rows` of the examples; with their targets when `training`."""
        raise TypeError(f"{type(self).__name__} encodes nothing.")

    def head(self, settings, config):
        """The Keras layer on top: called with (sequence [B, T, H], pooled [B, H] or None, padding_mask [B, T],
        training=...), it returns a dict of tensors whose first axis is B. `head.named_variables()`: dict Hugging
        Face name -> variable."""
        raise TypeError(f"{type(self).__name__} has no head.")

    def training_settings(self, options, examples, settings):
        """Settings with what else the training options ask for (class weights)."""
        return settings

    def initialize_head(self, head, rows, settings):
        """Sets what of a fresh head is known from the data (a bias at the mean, say)."""

    def objective(self, settings):
        """What `training.loop.Trainer` minimises; the protocol of `pretraining.objectives.masked_lm`."""
        raise TypeError(f"{type(self).__name__} trains nothing.")

    def decode(self, outputs, rows, examples, settings):
        """Predictions, a JSON-able dict each, one an example.

        Args:
            outputs: list of a dict of arrays a row (without the batch's axis; padding not cut off).
            rows: the `Rows` they came from; `rows.owner` tells the example of each.
        """
        raise TypeError(f"{type(self).__name__} decodes nothing.")

    def lines(self, prediction):
        """A prediction of `decode` for a person, a list of lines; None to have its values listed."""
        return None

    def score(self, examples, predictions, settings):
        """Dict of metrics, floats, and of counts; `metrics` names the former."""
        raise TypeError(f"{type(self).__name__} measures nothing.")

    def metrics(self, settings, examples):
        """Names of those scores of these examples that models can be compared by, a tuple."""
        raise TypeError(f"{type(self).__name__} measures nothing.")

    def check_metric(self, settings, examples):
        """Raises TaskError where the best epoch cannot be chosen by the settings' metric."""
        known = self.metrics(settings, examples)
        if settings.metric not in known:
            raise TaskError(f"--metric is {settings.metric!r}; these examples are measured by {', '.join(known)}.")

    def tune(self, examples, outputs, rows, settings):
        """Settings with what is chosen on the dev set (a threshold); the same ones by default."""
        return settings

    def findings(self, examples, predictions, settings):
        """`ErrorAnalysis` for the report."""
        return ErrorAnalysis()
