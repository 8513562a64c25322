"""The interface of a fine-tuning task; `sequence_classification.py` is the example to read.

An example is one line, sentence or question of a file. A row is one input sequence of the model; an example that is too
long for the model becomes several rows.

Shapes: B batch, T tokens, N rows.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.data.tables import FORMATS, column_names, records_or_errors, refuse_columns
from bert_tf.finetuning.tasks.head_formulas import dense_shapes, prediction_shapes

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Hashable, Iterator, Sequence

    import keras

    from bert_tf.config import BertConfig
    from bert_tf.finetuning.data.encoded_examples import EncodedExamples
    from bert_tf.finetuning.data.tables import BlankLines
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.head_formulas import Tensors
    from bert_tf.tokenizers.base import BaseTokenizer


@dataclass
class ErrorAnalysis:
    """The error analysis of a report.

    Attributes:
        confusion: (labels, counts [K, K] with a row for each true label), or None.
        per_label: list of dicts, each a row of the table of labels.
        worst: list of dicts, the worst errors first.
        worst_errors_title: str. The heading of the table of errors.
    """

    confusion: tuple | None = None
    per_label: list = field(default_factory=list)
    worst: list = field(default_factory=list)
    worst_errors_title: str = "The worst errors, highest confidence first"


def without_folder(place: str) -> str:
    """The file and line of an example without the folder, for a report that others may read.

    Args:
        place: str. File and line.

    Returns: str.
    """
    return place.replace("\\", "/").rpartition("/")[2]


class Task:
    """The interface of a task. A subclass is one module with an object `TASK`, listed in `registry.py`.

    The module must not import TensorFlow or Keras; `head` and `objective` import them when they are called.

    Attributes:
        task: str. The name on the command line and in task.json.
        several: bool. Whether the token ids of an example are [C, t], C texts of t tokens that are read one by one.
        has_weights: bool. Whether the head has weights.
        length: int. The default number of tokens that an input is cut to.
        split_by: str. What `split` never divides between training and dev set: equal inputs.
        sometimes: tuple of str. The keys that only some of the predictions have.
    """

    task = ""
    several = False
    has_weights = True
    length = 128
    split_by = "inputs"
    sometimes: tuple[str, ...] = ()

    def add_reading_arguments(self, parser: ArgumentParser) -> None:
        """Adds the options for reading a file, for training, evaluation and prediction."""

    def add_training_arguments(self, parser: ArgumentParser) -> None:
        """Adds the options of training."""

    def read(
        self, path: str | Path, options: Namespace, settings: TaskSettings | None = None, labelled: bool = True
    ) -> Iterator[Any]:
        """Yields the examples of a file.

        Args:
            path: str or Path. The file.
            options: argparse.Namespace. The parsed options.
            settings: the `TaskSettings` of the model that will read the examples; None before the training.
            labelled: bool. False if the targets are not needed.

        Raises: DataError or OSError if the file cannot be read.
        """
        raise TypeError(f"{type(self).__name__} reads no files.")

    def example(self, record: Any, settings: TaskSettings) -> Any:
        """Makes an example without a target from one JSON object, for `predict`.

        Args:
            record: a JSON value.
            settings: `TaskSettings`.

        Raises: DataError without file and line, which the caller adds.
        """
        raise TypeError(f"{type(self).__name__} reads no records.")

    def records(
        self, path: str | Path, options: Namespace = Namespace(), blank: BlankLines | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yields the records of a file for prediction.

        Args:
            path: str or Path. The file.
            options: argparse.Namespace. The options of `add_reading_arguments` that `predict` has. For a missing option
                or None, the ending and the header of the file decide.
            blank: `BlankLines` that counts the blank lines that are left out; None if nobody asks.

        Yields: (number of the line, record for `example`, or a DataError).

        Raises: DataError or OSError if the file cannot be read.
        """
        columns = column_names(getattr(options, "columns", None))
        kind = getattr(options, "format", None)
        refuse_columns(path, kind, columns)
        return records_or_errors(path, kind, ("text",) if kind == "lines" else columns, blank)

    def checked_records(
        self, path: str | Path, options: Namespace, settings: TaskSettings, blank: BlankLines | None = None
    ) -> Iterator[tuple[int, Any]]:
        """As `records`, but a table that lacks a column which the model reads is one error, not one for each row.

        Args:
            path, options, blank: as in `records`.
            settings: `TaskSettings` of the model.

        Yields: as `records`.

        Raises: DataError if a CSV or TSV file lacks a column, before its first row is yielded; as `records`.
        """
        kind = getattr(options, "format", None) or FORMATS.get(Path(path).suffix.lower())
        unchecked = kind in ("csv", "tsv")
        for number, record in self.records(path, options, blank):
            if unchecked and isinstance(record, dict):
                self.check_columns(path, record, options, settings)
                unchecked = False
            yield number, record

    def check_columns(
        self, path: str | Path, record: dict[str, Any], options: Namespace, settings: TaskSettings
    ) -> None:
        """Checks the columns of a table to predict for.

        Args:
            path: str or Path. The file, for messages.
            record: dict. A row by column; its values do not matter.
            options, settings: as in `checked_records`.

        Raises: DataError if a column is missing.
        """
        try:
            asked = self.asked(dict.fromkeys(record, "x"), options)
            if isinstance(asked, DataError):
                raise asked
            self.example(asked, settings)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def settings(self, options: Namespace, examples: Sequence[Any]) -> TaskSettings:
        """Makes the `TaskSettings` for training.

        Args:
            options: argparse.Namespace. The parsed options.
            examples: list of examples. The training examples.

        Returns: `TaskSettings`.

        Raises: DataError or TaskError if the examples or the options cannot be used.
        """
        raise TypeError(f"{type(self).__name__} trains no models.")

    def asked(self, record: Any, options: Namespace) -> Any:
        """The record for `example` from a record of `records`, whose columns the options may name; or a DataError."""
        return record

    def split(self, examples: Sequence[Any], share: float, seed: int = 0) -> tuple[list, list]:
        """Splits examples at random into a training and a dev set.

        Examples with equal inputs stay together, because the model must not have seen those of the dev set. The last
        example of a label stays in the training set, because the model must have seen every label.

        Args:
            examples: list of examples.
            share: float. The largest share of the dev set; it has less only if the examples kept together forbid it.
            seed: int. The seed of the random choice.

        Returns: two lists, the training and the dev examples.
        """
        remaining = Counter(label for example in examples for label in set(self.labels(example)))
        dev: set[int] = set()
        dev_size = round(share * len(examples))
        groups: dict[Any, list[int]] = {}
        for index, example in enumerate(examples):
            groups.setdefault(self.inputs(example), []).append(index)
        equal = list(groups.values())
        for number in np.random.default_rng(seed).permutation(len(equal)).tolist():
            labels = Counter(label for index in equal[number] for label in set(self.labels(examples[index])))
            fits = len(dev) + len(equal[number]) <= dev_size
            if fits and all(remaining[label] > count for label, count in labels.items()):
                remaining.subtract(labels)
                dev.update(equal[number])
        return (
            [example for index, example in enumerate(examples) if index not in dev],
            [example for index, example in enumerate(examples) if index in dev],
        )

    def inputs(self, example: Any) -> Hashable:
        """What the model reads of an example; equal for examples that `split` must keep together."""
        raise TypeError(f"{type(self).__name__} splits no examples.")

    def labels(self, example: Any) -> Sequence[str]:
        """The labels of an example that the training set must contain; empty if the targets are not labels."""
        return ()

    def check(self, examples: Sequence[Any], settings: TaskSettings) -> None:
        """Raises DataError if an example does not fit the settings (for example a label unknown to the model)."""

    def needs_pooler(self, settings: TaskSettings) -> bool:
        """Whether the head reads the pooler's output."""
        return settings.pools_first_token and "activation" not in settings.extra

    def first_layer(self, settings: TaskSettings, config: BertConfig) -> dict[str, Any]:
        """The arguments of a head for its own layer on the first token.

        Args:
            settings: `TaskSettings`.
            config: `BertConfig`.

        Returns: dict; empty if the head has no layer of its own.

        Raises: TaskError if the architecture has no head with this layer.
        """
        activation, known = settings.extra.get("activation"), config.architecture.sentence_heads.get(self.task)
        if activation is None or config.architecture.prediction_head:
            return {}
        if known is None or known[0] != activation:
            raise TaskError(
                f"There is no head of the task {self.task!r} on {config.architecture.with_article} model whose first "
                f"layer has the activation {activation!r}."
            )
        return {"hidden_act": activation, "names": known[1:]}

    def prediction(self, config: BertConfig) -> dict[str, Any]:
        """The argument of a head for the `PredictionHead` before its last layer; empty if the model has none."""
        if not config.architecture.prediction_head:
            return {}
        width, epsilon, stddev = config.hidden_size, config.layer_norm_eps, config.initializer_range
        return {"prediction": {"hidden_size": width, "epsilon": epsilon, "stddev": stddev}}

    def shapes_around(self, settings: TaskSettings, config: BertConfig, outputs: int) -> dict[str, tuple[int, ...]]:
        """The tensors of a head of one dense layer with K `outputs`, and of its layer on the first token if any."""
        first_layer, width = self.first_layer(settings, config), config.hidden_size
        first_name, last_name = first_layer.get("names", ("", "classifier"))
        shapes = dense_shapes(first_name, width, width) if first_layer else prediction_shapes(config)
        return {**shapes, **dense_shapes(last_name, outputs, width)}

    def encode(
        self, examples: Sequence[Any], tokenizer: BaseTokenizer, settings: TaskSettings, training: bool = False
    ) -> EncodedExamples:
        """Makes the `Rows` of examples; with `training` they include the targets."""
        raise TypeError(f"{type(self).__name__} encodes nothing.")

    def head(self, settings: TaskSettings, config: BertConfig) -> keras.layers.Layer:
        """Makes the Keras layer on top of the encoder.

        Its arguments are (sequence [B, T, H], pooled [B, H] or None, padding_mask [B, T], training=...). It returns a
        dict of tensors whose first axis is B. `head.named_variables()` is a dict Hugging Face name -> variable.

        Args:
            settings: `TaskSettings`.
            config: `BertConfig`.
        """
        raise TypeError(f"{type(self).__name__} has no head.")

    def head_shapes(self, settings: TaskSettings, config: BertConfig) -> dict[str, tuple[int, ...]]:
        """The tensors of the head in a model folder: dict of Hugging Face name -> shape, matrices [out, in].

        Args:
            settings: `TaskSettings`.
            config: `BertConfig`.
        """
        raise TypeError(f"{type(self).__name__} has no head.")

    def head_outputs(
        self,
        tensors: Tensors,
        settings: TaskSettings,
        last_layer: str,
        sequence: np.ndarray,
        pooled: np.ndarray | None,
        padding_mask: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """The outputs of `head` without dropout, computed in NumPy from the tensors of the folder.

        Args:
            tensors: dict of name -> float32 array, with the shapes of `head_shapes`.
            settings: `TaskSettings`.
            last_layer: str. The name of the last layer, if the task has `first_layer`.
            sequence, pooled, padding_mask: arrays, as the arguments of `head`. `pooled` is the output of the first
                layer if the head has one.

        Returns: dict of float32 arrays, as `head` returns.
        """
        raise TypeError(f"{type(self).__name__} has no head.")

    def training_settings(self, options: Namespace, examples: Sequence[Any], settings: TaskSettings) -> TaskSettings:
        """The settings with the values of other training options (class weights)."""
        return settings

    def fewest_rows(self, settings: TaskSettings) -> int:
        """The least number of rows that the loss must see together to learn from them."""
        return 1

    def initialize_head(self, head: keras.layers.Layer, rows: EncodedExamples, settings: TaskSettings) -> None:
        """Initializes a new head from the data (for example the bias with the mean of the targets)."""

    def objective(self, settings: TaskSettings) -> Callable[..., dict[str, Any]]:
        """The objective for `training.loop.Trainer`, with the protocol of `pretraining.objectives.masked_lm`."""
        raise TypeError(f"{type(self).__name__} trains nothing.")

    def decode(
        self,
        outputs: Sequence[dict[str, np.ndarray]],
        rows: EncodedExamples,
        examples: Sequence[Any],
        settings: TaskSettings,
    ) -> list[dict[str, Any]]:
        """Makes the predictions of examples.

        Args:
            outputs: list with a dict of arrays for each row (without the batch axis, with padding).
            rows: the `Rows` of the outputs; `rows.owner` is the example of each row.
            examples: list of examples.
            settings: `TaskSettings`.

        Returns: list of dicts of JSON values, one for each example.
        """
        raise TypeError(f"{type(self).__name__} decodes nothing.")

    def lines(self, prediction: dict[str, Any]) -> list[str] | None:
        """The text of a prediction, a list of lines; None to print the values of the dict."""
        return None

    def score(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> dict[str, Any]:
        """The metrics (floats) and counts of predictions, a dict; `metrics` returns the names of the metrics."""
        raise TypeError(f"{type(self).__name__} measures nothing.")

    def metrics(self, settings: TaskSettings, examples: Sequence[Any]) -> tuple[str, ...]:
        """The names of the metrics of these examples by which models can be compared, a tuple."""
        raise TypeError(f"{type(self).__name__} measures nothing.")

    def check_metric(self, settings: TaskSettings, examples: Sequence[Any]) -> None:
        """Raises TaskError if the metric of the settings cannot select the best epoch."""
        known = self.metrics(settings, examples)
        if settings.metric not in known:
            raise TaskError(f"--metric is {settings.metric!r}; these examples are measured by {', '.join(known)}.")

    def tune(
        self,
        examples: Sequence[Any],
        outputs: Sequence[dict[str, np.ndarray]],
        rows: EncodedExamples,
        settings: TaskSettings,
    ) -> TaskSettings:
        """The settings with values chosen on the dev set (a threshold); the same settings by default."""
        return settings

    def findings(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> ErrorAnalysis:
        """The `ErrorAnalysis` of the report."""
        return ErrorAnalysis()
