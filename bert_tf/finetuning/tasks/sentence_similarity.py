"""The task "similarity": a vector of each text, so that the cosine of two vectors says how similar the texts are.

The model reads each text alone. Its vector is the mean of the hidden states, their maximum, or the first of them. It
learns from pairs that belong together, each against the other pairs of its batch, or from pairs with a score.

Shapes: B batch, T tokens, H hidden size.

Sources: Reimers & Gurevych 2019 (Sentence-BERT); Henderson et al. 2017 (negatives of the batch).
"""

from __future__ import annotations

from argparse import Namespace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.data.encoded_examples import EncodedExamples, stacked
from bert_tf.finetuning.data.glue import GLUE
from bert_tf.finetuning.data.sentence_examples import (
    LABEL_COLUMNS,
    ColumnLayout,
    glue_layout,
    read_sentences,
    usual_column,
)
from bert_tf.finetuning.data.tables import column_names, records_or_errors
from bert_tf.finetuning.task_settings import SIMILARITY_POOLINGS, TaskSettings
from bert_tf.finetuning.tasks.head_formulas import normalized, sentence_vector
from bert_tf.finetuning.tasks.sequence_classification import TASK as CLASSIFICATION
from bert_tf.finetuning.tasks.task import ErrorAnalysis, Task, without_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from pathlib import Path

    import keras

    from bert_tf.config import BertConfig
    from bert_tf.finetuning.data.tables import BlankLines
    from bert_tf.finetuning.tasks.head_formulas import Tensors
    from bert_tf.tokenizers.base import BaseTokenizer


_WORST = 50


class PairPrediction(dict):
    """The prediction for a pair: {"value": the cosine}.

    Attributes:
        vectors: float32 [2, H], the vectors of the two texts; no part of the record, but the accuracy of a set of pairs
            compares the vectors of all of them.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        units = normalized(vectors.astype(np.float64))
        super().__init__(value=float(units[0] @ units[1]))
        self.vectors = vectors


class SentenceSimilarity(Task):
    """Vectors of sentences; the examples are `SentenceExample`s with two texts."""

    task, several, has_weights = "similarity", True, False

    def add_reading_arguments(self, parser: ArgumentParser) -> None:
        scored = [name for name, task in GLUE.items() if task.regression]
        parser.add_argument("--glue", metavar="NAME", help=f"the file is one of GLUE's: {', '.join(scored)}")
        parser.add_argument("--format", metavar="F", help="csv, tsv or jsonl (default: by the file's ending)")
        parser.add_argument("--columns", metavar="A,B,…", help="names of the columns of a file without a header")
        parser.add_argument("--text-column", metavar="NAME", help="column of the first text (default: text_a, …)")
        parser.add_argument("--text2-column", metavar="NAME", help="column of the second text (default: text_b, …)")
        parser.add_argument(
            "--score-column",
            metavar="NAME",
            help="column of how similar the two are, a number (default: score or label if there is one; without it "
            "the two texts of a row belong together)",
        )

    def add_training_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--pooling",
            default="mean",
            metavar="P",
            help=f"how a text's vector is computed: {', '.join(SIMILARITY_POOLINGS)} (default mean; first is the "
            "hidden state of [CLS])",
        )

    def read(
        self, path: str | Path, options: Namespace, settings: TaskSettings | None = None, labelled: bool = True
    ) -> Iterator[Any]:
        layout = self._layout(path, options)
        scored = labelled and layout.label is not None
        missing = LABEL_COLUMNS if labelled and not scored else ()
        yield from read_sentences(path, layout, options.format, scored, missing=missing, pair=True)

    def _layout(self, path, options):
        if getattr(options, "glue", None):
            layout = glue_layout(options.glue, path, options.format)
            if not layout.regression:
                raise DataError(f"GLUE's {options.glue} has labels; similarity is learned from pairs or from scores.")
            return layout
        columns = column_names(options.columns)
        score = getattr(options, "score_column", None)
        if score is None and str(path) != "-":
            record: Any = next((one for _, one in islice(records_or_errors(path, options.format, columns), 1)), {})
            score = usual_column(record, LABEL_COLUMNS) if isinstance(record, dict) else None
        return ColumnLayout(options.text_column, options.text2_column, score, columns, regression=True)

    def example(self, record: Any, settings: TaskSettings) -> Any:
        return CLASSIFICATION.example(record, settings)

    def records(
        self, path: str | Path, options: Namespace = Namespace(), blank: BlankLines | None = None
    ) -> Iterator[tuple[int, Any]]:
        return CLASSIFICATION.records(path, options, blank)

    def check_columns(
        self, path: str | Path, record: dict[str, Any], options: Namespace, settings: TaskSettings
    ) -> None:
        CLASSIFICATION.check_columns(path, record, options, settings)

    def asked(self, record: Any, options: Namespace) -> Any:
        return CLASSIFICATION.asked(record, options)

    def inputs(self, example: Any) -> Hashable:
        return tuple(sorted((example.text_a, example.text_b)))  # the cosine does not depend on the order

    def settings(self, options: Namespace, examples: Sequence[Any]) -> TaskSettings:
        scores = [example.target for example in examples if example.target is not None]
        extra: dict[str, Any] = {"normalize": True, "lower_case": False}
        if scores:
            extra["score_range"] = [min(scores), max(scores)]
            if min(scores) == max(scores):
                raise DataError(f"Every score is {scores[0]:g}; there is nothing to learn from them.")
        return TaskSettings(
            self.task,
            pooling=options.pooling,
            regression=True,
            pair=True,
            max_length=options.length,
            metric=options.metric or ("spearman" if scores else "accuracy"),
            extra=extra,
        )

    def encode(
        self, examples: Sequence[Any], tokenizer: BaseTokenizer, settings: TaskSettings, training: bool = False
    ) -> EncodedExamples:
        texts = [text for example in examples for text in (example.text_a, example.text_b)]
        if settings.extra["lower_case"]:
            texts = [text.lower() for text in texts]
        packed = iter(tokenizer.encode_batch(((text, None) for text in texts), max_length=settings.max_length))
        pairs = [(next(packed), next(packed)) for _ in examples]
        rows = EncodedExamples(stacked(pairs, tokenizer.pad_id), pad_id=tokenizer.pad_id)
        if training and "score_range" in settings.extra:
            low, high = settings.extra["score_range"]
            rows.values["targets"] = np.array([(one.target - low) / (high - low) for one in examples], np.float32)
        elif training:
            numbers = _numbers(texts)
            rows.values |= {"first_texts": numbers[0::2], "second_texts": numbers[1::2]}
        return rows

    def needs_pooler(self, settings: TaskSettings) -> bool:
        return False

    def prediction(self, config: BertConfig) -> dict[str, Any]:
        return {}

    def head(self, settings: TaskSettings, config: BertConfig) -> keras.layers.Layer:
        from bert_tf.layers.classifier import SimilarityHead

        return SimilarityHead(settings.pooling, settings.extra["normalize"], name="head")

    def head_shapes(self, settings: TaskSettings, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return {}

    def head_outputs(
        self,
        tensors: Tensors,
        settings: TaskSettings,
        last_layer: str,
        sequence: np.ndarray,
        pooled: np.ndarray | None,
        padding_mask: np.ndarray,
    ) -> dict[str, np.ndarray]:
        vectors = sentence_vector(settings.pooling, tensors, sequence, pooled, padding_mask)
        return {"vectors": normalized(vectors) if settings.extra["normalize"] else vectors}

    def objective(self, settings: TaskSettings) -> Callable[..., dict[str, Any]]:
        from bert_tf.finetuning.tasks.similarity_losses import ContrastiveLoss, CosineLoss

        return CosineLoss() if "score_range" in settings.extra else ContrastiveLoss()

    def fewest_rows(self, settings: TaskSettings) -> int:
        return 1 if "score_range" in settings.extra else 2  # each pair learns from the others

    def decode(
        self,
        outputs: Sequence[dict[str, np.ndarray]],
        rows: EncodedExamples,
        examples: Sequence[Any],
        settings: TaskSettings,
    ) -> list[dict[str, Any]]:
        return [PairPrediction(one["vectors"]) for one in outputs]

    def lines(self, prediction: dict[str, Any]) -> list[str] | None:
        return [f"cosine: {prediction['value']:.4f}"]

    def score(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> dict[str, Any]:
        if examples[0].target is not None:
            from bert_tf.finetuning.metrics.sequence_metrics import score

            scores = score(examples, predictions, settings)
            return {name: scores[name] for name in self.metrics(settings, examples)}
        ranks = _partner_ranks(examples, predictions)
        return {"accuracy": float(np.mean(ranks == 1)), "mean_reciprocal_rank": float(np.mean(1 / ranks))}

    def metrics(self, settings: TaskSettings, examples: Sequence[Any]) -> tuple[str, ...]:
        return ("spearman", "pearson") if examples[0].target is not None else ("accuracy", "mean_reciprocal_rank")

    def check_metric(self, settings: TaskSettings, examples: Sequence[Any]) -> None:
        known = self.metrics(settings, examples)
        if settings.metric not in known:
            kind = "have scores" if examples[0].target is not None else "have no scores"
            raise TaskError(
                f"--metric is {settings.metric!r}, but the examples that select the best epoch {kind}; give one of "
                f"{', '.join(known)}."
            )

    def findings(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> ErrorAnalysis:
        if examples[0].target is None:
            title, column = "The pairs whose second text ranks lowest among those of all pairs", "rank"
            values = _partner_ranks(examples, predictions)
        else:
            from scipy.stats import rankdata

            title, column = "The pairs whose rank by cosine is farthest from their rank by score", "ranks_apart"
            targets = [example.target for example in examples]
            cosines = [prediction["value"] for prediction in predictions]
            values = np.abs(rankdata(targets) - rankdata(cosines))
        rows = [
            {
                column: float(value),
                "cosine": prediction["value"],
                **({} if example.target is None else {"score": example.target}),
                "text_a": example.text_a,
                "text_b": example.text_b,
                "source": without_folder(example.where),
            }
            for example, prediction, value in zip(examples, predictions, values)
        ]
        return ErrorAnalysis(
            worst=sorted(rows, key=lambda row: -row[column])[:_WORST],
            worst_errors_title=title,
        )


def _numbers(texts):
    """A number for each text, int32 [N]: equal for equal texts, from 0 in the order of the first occurrence."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int32)


def _partner_ranks(examples, predictions):
    """The rank [N], from 1, of each pair's second text among the different second texts of all pairs, by the cosine.

    A text that several pairs have counts once. The first text itself and its partners of other pairs are left out, as
    in training. A text as near as the pair's own ranks before it: a model whose vectors are all equal finds no partner.
    """
    texts = _numbers([example.text_b for example in examples])
    number_of = {example.text_b: number for example, number in zip(examples, texts)}
    left_out: dict[str, set] = {}  # the first text -> the numbers of the second texts that are no negatives of it
    for example, number in zip(examples, texts):
        left_out.setdefault(example.text_a, {number_of.get(example.text_a, number)}).add(number)
    vectors = normalized(np.stack([prediction.vectors for prediction in predictions]))
    different = vectors[np.unique(texts, return_index=True)[1], 1]  # [M, H], text 0 first
    ranks = []
    for first in range(0, len(vectors), 1024):  # so that a large set needs no N x M matrix
        cosines = vectors[first : first + 1024, 0] @ different.T
        own_texts = texts[first : first + 1024]
        own = cosines[np.arange(len(cosines)), own_texts]
        for row, (example, number) in enumerate(zip(examples[first : first + 1024], own_texts)):
            cosines[row, list(left_out[example.text_a] - {number})] = -np.inf
        ranks.append((~(cosines < own[:, None])).sum(axis=1))  # its own text is not below, nor is NaN
    return np.concatenate(ranks)


TASK = SentenceSimilarity()
