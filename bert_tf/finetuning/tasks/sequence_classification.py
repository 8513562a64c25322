"""The task "classify": a label, several labels or a number for a sentence or a pair.

Sources: Devlin et al. 2019, section 4.1; Wang et al. 2019 (GLUE) for the tasks and metrics.
"""

from __future__ import annotations

import math
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.class_weights import class_weights
from bert_tf.finetuning.data.document_stride import pair_windows
from bert_tf.finetuning.data.encoded_examples import EncodedExamples
from bert_tf.finetuning.data.glue import GLUE
from bert_tf.finetuning.data.sentence_examples import (
    TEXT2_COLUMNS,
    TEXT_COLUMNS,
    ColumnLayout,
    SentenceExample,
    find_columns,
    glue_layout,
    read_sentences,
    usual_column,
)
from bert_tf.finetuning.data.tables import column_names, lines_hint, records_or_errors, table_format
from bert_tf.finetuning.task_settings import POOLINGS, TaskSettings
from bert_tf.finetuning.tasks.head_formulas import dense, dense_shapes, sentence_vector
from bert_tf.finetuning.tasks.task import Task
from bert_tf.tokenizers.packing import Truncation

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from pathlib import Path

    import keras

    from bert_tf.config import BertConfig
    from bert_tf.finetuning.data.tables import BlankLines
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.head_formulas import Tensors
    from bert_tf.finetuning.tasks.task import ErrorAnalysis
    from bert_tf.tokenizers.base import BaseTokenizer


THRESHOLD = 0.5
#: How the logits of the windows of a long text become those of the text.
WINDOW_POOLINGS = ("mean", "max")


class SequenceClassification(Task):
    """Sentence and pair classification, and regression."""

    task = "classify"
    sometimes = ("truncated",)

    def add_reading_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--glue", metavar="NAME", help=f"the file is one of GLUE's: {', '.join(GLUE)}")
        parser.add_argument("--format", metavar="F", help="csv, tsv or jsonl (default: by the file's ending)")
        parser.add_argument("--columns", metavar="A,B,…", help="names of the columns of a file without a header")
        parser.add_argument("--text-column", metavar="NAME", help="column of the text (default: text, sentence, …)")
        parser.add_argument("--text2-column", metavar="NAME", help="column of a pair's second text")
        parser.add_argument("--label-column", metavar="NAME", help="column of the label (default: label, score)")
        parser.add_argument(
            "--label-separator",
            default="|",
            metavar="C",
            help="between the labels of one field, with --multi-label (default |)",
        )
        parser.add_argument(
            "--windows",
            choices=WINDOW_POOLINGS,
            help="read a text that is too long in overlapping windows (of a pair the second text), and take the mean "
            "or the maximum of their logits (default: as the model was trained, else the text is cut)",
        )
        parser.add_argument("--stride", type=int, metavar="N", help="step of the windows, in pieces (default: half)")

    def add_training_arguments(self, parser: ArgumentParser) -> None:
        kind = parser.add_mutually_exclusive_group()
        kind.add_argument("--multi-label", action="store_true", help="any number of labels for an example")
        kind.add_argument("--regression", action="store_true", help="the label is a number")
        parser.add_argument(
            "--pooling",
            default="cls",
            metavar="P",
            help=f"how the sentence's vector is computed: {', '.join(POOLINGS)} (default cls: the pooler)",
        )
        parser.add_argument(
            "--class-weights",
            metavar="W",
            help='"balanced", or LABEL=WEIGHT,…: the weight of the examples of a label in the loss',
        )

    def read(
        self, path: str | Path, options: Namespace, settings: TaskSettings | None = None, labelled: bool = True
    ) -> Iterator[Any]:
        layout = self._layout(path, options, settings)
        # GLUE's files have some broken rows, which are usually left out.
        skipped: list | None = [] if options.glue else None
        yield from read_sentences(path, layout, options.format, labelled, skipped)
        if skipped:
            print(
                f"{path}: left out {len(skipped):,} rows that lack a field or a text. The first: {skipped[0]}",
                file=sys.stderr,
            )

    def _layout(self, path, options, settings):
        if options.glue:
            return glue_layout(options.glue, path, options.format)
        kind = settings or options
        if kind.multi_label and not options.label_separator:
            raise TaskError("--label-separator is empty; give what stands between the labels of one field.")
        columns = column_names(options.columns)
        return ColumnLayout(
            options.text_column,
            options.text2_column,
            options.label_column,
            columns,
            kind.regression,
            kind.multi_label,
            options.label_separator,
        )

    def example(self, record: Any, settings: TaskSettings) -> Any:
        if isinstance(record, SentenceExample):
            return record
        if isinstance(record, str):
            texts = (record, None)
        elif isinstance(record, dict):
            texts = (
                _first(record, "text_a", "text", "sentence", "sentence1"),
                _first(record, "text_b", "text2", "sentence2"),
            )
        else:
            given = tuple(record) if isinstance(record, Iterable) else (record,)
            if len(given) > 2:
                raise DataError(f"Give a text or a pair, not {len(given)} texts ({given!r:.60}).")
            texts = (*given, None, None)[:2]
        if settings.pair is False and texts[1] is not None and texts[1] != "":
            raise DataError(f"This model reads one text; there is a second one, {texts[1]!r:.40}: leave it out.")
        both = settings.pair or settings.pair is None and texts[1]
        if both and texts[0] and texts[1] is None:
            raise DataError('This model reads two texts; give a second one (in a JSON line "text_b").')
        for name, text in zip(("text_a", "text_b"), texts[: 2 if both else 1]):
            if not isinstance(text, str) or not text.strip():
                is_none = text is None or isinstance(text, str)
                reads = f"This model reads {'two texts' if both else 'a text'}"
                keys = '"text_a" and "text_b"' if both else '"text_a" or "text"'
                raise DataError(
                    f"{reads}, and {name} is {'missing or empty' if is_none else f'{text!r:.40}, which is no text'}: "
                    f"give {keys} with at least one word."
                )
        return SentenceExample(texts[0], texts[1] or None)

    def settings(self, options: Namespace, examples: Sequence[Any]) -> TaskSettings:
        glue = GLUE.get(options.glue) if options.glue else None
        regression = glue.regression if glue else options.regression
        multi_label = options.multi_label and not glue
        if regression:
            labels = ()
        elif glue:
            labels = tuple(dict.fromkeys(glue.names.values()))
        else:
            labels = _label_names(examples)
        metric = glue.metric if glue else ("spearman" if regression else "f1_micro" if multi_label else "accuracy")
        return TaskSettings(
            self.task,
            labels,
            options.pooling,
            multi_label,
            regression,
            pair=examples[0].text_b is not None,
            max_length=options.length,
            metric=options.metric or metric,
        ).replace(extra=window_settings(options))

    def records(
        self, path: str | Path, options: Namespace = Namespace(), blank: BlankLines | None = None
    ) -> Iterator[tuple[int, Any]]:
        if not getattr(options, "glue", None):
            return super().records(path, options, blank)
        if str(path) == "-" and table_format(path, options.format) != "jsonl":
            raise DataError("With --glue the first line of the file is looked at beforehand; give a file instead of -.")
        columns = glue_layout(options.glue, path, options.format).columns
        return records_or_errors(path, options.format, columns, blank)

    def check_columns(
        self, path: str | Path, record: dict[str, Any], options: Namespace, settings: TaskSettings
    ) -> None:
        if getattr(options, "glue", None):
            return  # `glue_layout` has compared the header
        layout = ColumnLayout(getattr(options, "text_column", None), getattr(options, "text2_column", None))
        try:
            find_columns(path, record, layout, labelled=False, pair=bool(settings.pair))
        except DataError as error:
            raise DataError(f"{error}{lines_hint(path, getattr(options, 'format', None))}") from None

    def asked(self, record: Any, options: Namespace) -> Any:
        if not isinstance(record, dict):
            return record
        columns = GLUE[options.glue].texts if options.glue else (options.text_column, options.text2_column)
        # As in training; but a JSON line may have null under one name and its text under another.
        given = [name for name, value in record.items() if value is not None]
        for name, column, names in zip(("text_a", "text_b"), columns, (TEXT_COLUMNS, TEXT2_COLUMNS)):
            column = usual_column(given, names) if column is None else column
            if column is not None:
                if column not in record:
                    return DataError(f"There is no column {column!r}; the columns are {', '.join(record):.160}.")
                record = {**record, name: record[column]}
        return record

    def inputs(self, example: Any) -> Hashable:
        return example.text_a, example.text_b

    def labels(self, example: Any) -> Sequence[str]:
        return tuple(label for label in _labels_of(example) if isinstance(label, str))

    def check(self, examples: Sequence[Any], settings: TaskSettings) -> None:
        known = set(settings.labels)
        for one in examples:
            if settings.pair is not None and (one.text_b is not None) != settings.pair:
                raise DataError(
                    f"{one.where}: this model reads {'pairs' if settings.pair else 'single texts'}, "
                    f"and this is {'a pair' if one.text_b is not None else 'a single text'}."
                )
            for label in () if settings.regression else _labels_of(one):
                if label not in known:
                    raise DataError(
                        f"{one.where}: the label {label!r:.60} is not one of the model's: "
                        f"{', '.join(settings.labels):.160}."
                    )

    def encode(
        self, examples: Sequence[Any], tokenizer: BaseTokenizer, settings: TaskSettings, training: bool = False
    ) -> EncodedExamples:
        pairs = [(one.text_a, one.text_b) for one in examples]
        packed = [[one] for one in tokenizer.encode_batch(pairs, max_length=settings.max_length)]
        if settings.extra.get("windows"):
            for number, (one,) in enumerate(packed):
                if any(one.truncated):
                    packed[number] = _windows(pairs[number], tokenizer, settings)
        owner = np.repeat(np.arange(len(packed)), [len(windows) for windows in packed])
        rows = EncodedExamples(
            {
                "token_ids": [one.token_ids for windows in packed for one in windows],
                "segment_ids": [one.segment_ids for windows in packed for one in windows],
            },
            owner=owner,
            pad_id=tokenizer.pad_id,
            notes=[one.truncated for windows in packed for one in windows],
        )
        if training:
            rows.values["targets"] = targets(examples, settings)[owner]
            weights = settings.extra.get("class_weights", {})
            # Every text counts the same, in however many windows it is read.
            counts = np.array([len(windows) for windows in packed], np.float32)
            classes = np.array([weights.get(one.target, 1.0) for one in examples], np.float32)
            rows.values["weights"] = (classes / counts)[owner]
            if len(owner) > len(packed):
                rows.values["mean_weights"] = classes[owner] * np.float32(np.mean(1 / counts[owner]))
        return rows

    def training_settings(self, options: Namespace, examples: Sequence[Any], settings: TaskSettings) -> TaskSettings:
        """The settings with the class weights of the options."""
        if not options.class_weights:
            return settings
        if settings.regression or settings.multi_label:
            raise TaskError("--class-weights goes with one label an example.")
        counts = Counter(one.target for one in examples)
        weights = class_weights(options.class_weights, {label: counts[label] for label in settings.labels})
        return settings.replace(extra={**settings.extra, "class_weights": weights})

    def head(self, settings: TaskSettings, config: BertConfig) -> keras.layers.Layer:
        from bert_tf.layers.classifier import SentenceHead

        return SentenceHead(
            1 if settings.regression else len(settings.labels),
            settings.pooling,
            config.hidden_dropout_prob,
            config.initializer_range,
            config.hidden_size,
            **self.first_layer(settings, config),
            **self.prediction(config),
            name="head",
        )

    def head_shapes(self, settings: TaskSettings, config: BertConfig) -> dict[str, tuple[int, ...]]:
        outputs = 1 if settings.regression else len(settings.labels)
        shapes = self.shapes_around(settings, config, outputs)
        if settings.pooling == "attention":
            shapes |= dense_shapes("attention_pooling", 1, config.hidden_size)
        return shapes

    def head_outputs(
        self,
        tensors: Tensors,
        settings: TaskSettings,
        last_layer: str,
        sequence: np.ndarray,
        pooled: np.ndarray | None,
        padding_mask: np.ndarray,
    ) -> dict[str, np.ndarray]:
        vector = sentence_vector(settings.pooling, tensors, sequence, pooled, padding_mask)
        return {"logits": dense(tensors, last_layer, vector)}

    def initialize_head(self, head: keras.layers.Layer, rows: EncodedExamples, settings: TaskSettings) -> None:
        if settings.regression:
            # Otherwise the first updates only learn the mean of the targets.
            head.classifier.bias.assign([float(np.mean(rows.values["targets"]))])

    def objective(self, settings: TaskSettings) -> Callable[..., dict[str, Any]]:
        from bert_tf.finetuning.tasks.sequence_losses import SequenceLoss

        return SequenceLoss(settings.regression, settings.multi_label)

    def decode(
        self,
        outputs: Sequence[dict[str, np.ndarray]],
        rows: EncodedExamples,
        examples: Sequence[Any],
        settings: TaskSettings,
    ) -> list[dict[str, Any]]:
        predictions = self._predictions(outputs, rows, examples, settings)
        for number, truncation in zip(np.asarray(rows.owner), rows.notes):
            if truncation:
                predictions[number]["truncated"] = truncation._asdict()
        return predictions

    def _predictions(self, outputs, rows, examples, settings):
        logits = np.stack([one["logits"] for one in outputs]) if outputs else np.zeros((0, 1))
        if len(logits) > len(examples):
            pool = np.maximum if settings.extra["windows"] == "max" else np.add
            starts, counts = np.unique(np.asarray(rows.owner), return_index=True, return_counts=True)[1:]
            logits = pool.reduceat(logits, starts) / (1 if pool is np.maximum else counts[:, None])
        if settings.regression:
            return [{"value": float(value)} for value in logits[:, 0]]
        names = settings.labels
        if settings.multi_label:
            probabilities = 1 / (1 + np.exp(-logits.astype(np.float64)))
            return [
                {
                    "labels": [name for name, probability in zip(names, row) if probability > THRESHOLD],
                    "probabilities": _named(names, row),
                }
                for row in probabilities
            ]
        powers = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
        probabilities = powers / powers.sum(axis=1, keepdims=True)
        return [
            {
                "label": names[row.argmax()],
                "probability": float(row.max()),
                "probabilities": _named(names, row),
            }
            for row in probabilities
        ]

    def score(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> dict[str, Any]:
        from bert_tf.finetuning.metrics.sequence_metrics import score

        return score(examples, predictions, settings)

    def metrics(self, settings: TaskSettings, examples: Sequence[Any]) -> tuple[str, ...]:
        if settings.regression:
            return ("pearson", "spearman", "mean_squared_error")
        if settings.multi_label:
            return ("f1_micro", "f1_macro", "all_labels_right")
        single = ("accuracy", "f1_macro", "precision_macro", "recall_macro", "matthews")
        return (*single, "f1") if len(settings.labels) == 2 else single

    def findings(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> ErrorAnalysis:
        from bert_tf.finetuning.metrics.sequence_metrics import findings

        return findings(examples, predictions, settings)


TASK = SequenceClassification()


def targets(examples: Sequence[Any], settings: TaskSettings) -> np.ndarray:
    """The targets of the loss: float32 [N] (regression), float32 [N, K] (several labels) or int32 [N]."""
    if settings.regression:
        return np.array([example.target for example in examples], np.float32)
    numbers = {label: index for index, label in enumerate(settings.labels)}
    if not settings.multi_label:
        return np.array([numbers[example.target] for example in examples], np.int32)
    indicators = np.zeros((len(examples), len(numbers)), np.float32)
    for row, example in enumerate(examples):
        indicators[row, [numbers[label] for label in example.target]] = 1
    return indicators


def window_settings(options: Namespace) -> dict[str, Any]:
    """The entries of `TaskSettings.extra` for the options --windows and --stride.

    Raises: TaskError if there is a stride below 1, or one without windows.
    """
    windows, stride = getattr(options, "windows", None), getattr(options, "stride", None)
    if stride is not None and (stride < 1 or windows is None):
        raise TaskError(f"--stride is {stride}; it is the step of --windows, 1 piece or more.")
    return {"windows": windows, "stride": stride} if windows else {}


def _windows(pair, tokenizer, settings):
    """The windows of a text or pair that is too long: list of `PackedPair`.

    The first text of a pair is cut only where the second needs the room, and to no less than half of the length. Each
    window tells how much was cut of it.
    """
    ids_a, *rest = tokenizer.batch_ids([text for text in pair if text])
    ids_b, cut = rest[0] if rest else None, 0
    if ids_b is not None:
        room = settings.max_length - tokenizer.pack_pair([], [], settings.max_length).length
        kept = max(settings.max_length // 2, room - len(ids_b))
        cut, ids_a = max(0, len(ids_a) - kept), ids_a[:kept]
    windows = pair_windows(tokenizer, ids_a, ids_b, settings.max_length, settings.extra.get("stride"))
    return [packed._replace(truncated=Truncation(tokens_a=cut)) for _, packed in windows]


def _first(record, *names):
    return next((record[name] for name in names if record.get(name) is not None), None)


def _named(names, probabilities):
    return dict(zip(names, map(float, probabilities)))


def _labels_of(example):
    return example.target if isinstance(example.target, tuple) else (example.target,)


def _label_names(examples):
    """The labels that occur, numbers sorted by value and others by the alphabet."""
    labels = {label for example in examples for label in _labels_of(example)}
    if not labels or len(labels) == 1 and all(_labels_of(example) for example in examples):
        only = f"only the label {next(iter(labels))!r:.60}" if labels else "no label"
        raise DataError(f"{examples[0].where.rpartition(' line ')[0]} holds {only}; there is nothing to tell apart.")

    def sort_key(label):
        try:
            number = float(label)
        except ValueError:
            number = math.nan
        # "nan" is a word here: it is neither smaller nor larger than a number.
        return (0, number, label) if math.isfinite(number) else (1, 0.0, label)

    return tuple(sorted(labels, key=sort_key))
