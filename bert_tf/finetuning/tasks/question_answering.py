"""Extractive question answering: the answer is a span of the passage, or there is none.

A passage that is too long for the model is read in overlapping windows, each after the question. Answers are spans of
the passage; each span is scored in the window with the most context around its start. "No answer" is the span of [CLS].

T tokens, n pieces of a passage. Source: Devlin et al. 2019, sections 4.2 and 4.3, and `run_squad.py`.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.data.document_stride import best_window, merge, pair_windows
from bert_tf.finetuning.data.encoded_examples import EncodedExamples
from bert_tf.finetuning.data.squad import Question, read_squad, split_by_passage
from bert_tf.finetuning.metrics.best_spans import best_spans
from bert_tf.finetuning.metrics.squad_metric import best_threshold, question_scores, squad_scores
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.head_formulas import dense, dense_shapes, prediction_shapes
from bert_tf.finetuning.tasks.task import ErrorAnalysis, Task

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Iterator, Sequence

    import keras

    from bert_tf.config import BertConfig
    from bert_tf.finetuning.data.tables import BlankLines
    from bert_tf.finetuning.tasks.head_formulas import Tensors
    from bert_tf.tokenizers.base import BaseTokenizer


_SPECIAL = 3
_DEFAULTS = {
    "stride": 128,
    "question_length": 64,
    "answer_length": 30,
    "n_best": 5,
    "no_answer": False,
    "threshold": 0.0,
}


@dataclass(frozen=True)
class _RowWindow:
    """The passage window of a row.

    Attributes:
        window: (start, end) in pieces of the passage.
        offset: int. The token position of the window's first piece.
        offsets: (start, end) in characters of every piece of the passage.
    """

    window: tuple
    offset: int
    offsets: tuple


class QuestionAnswering(Task):
    """The task `answer`; its examples are `squad.Question`s."""

    task = "answer"
    length = 384  # as in Google's run_squad.py
    split_by = "passages"

    def add_training_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--stride",
            type=int,
            default=_DEFAULTS["stride"],
            metavar="N",
            help="step of the window over a long passage, in pieces (default %(default)s)",
        )
        parser.add_argument(
            "--question-length",
            type=int,
            default=_DEFAULTS["question_length"],
            metavar="N",
            help="maximum length of a question, in pieces (default %(default)s)",
        )
        parser.add_argument(
            "--answer-length",
            type=int,
            default=_DEFAULTS["answer_length"],
            metavar="N",
            help="maximum length of an answer, in pieces (default %(default)s)",
        )

    def read(
        self, path: str | Path, options: Namespace, settings: TaskSettings | None = None, labelled: bool = True
    ) -> Iterator[Any]:
        yield from read_squad(path, labelled)

    def example(self, record: Any, settings: TaskSettings) -> Any:
        if isinstance(record, Question):
            return record
        if not isinstance(record, dict):
            raise DataError('Give a "question" and a "passage" in one object.')
        for name in ("question", "passage"):
            if not isinstance(record.get(name), str) or not record[name].strip():
                raise DataError(
                    f'Give a "question" and a "passage" as text; {name!r} is missing or empty '
                    f"(found: {', '.join(record) or 'nothing':.160})."
                )
        key = record.get("id")
        return Question(
            "" if key is None else str(key),
            record["question"],
            record["passage"],
            (),
            curves=bool(record.get("curves", False)),
        )

    def records(
        self, path: str | Path, options: Namespace = Namespace(), blank: BlankLines | None = None
    ) -> Iterator[tuple[int, Any]]:
        if getattr(options, "format", None) or Path(path).suffix.lower() != ".json":
            return super().records(path, options, blank)
        return enumerate(read_squad(path, labelled=False), 1)

    def split(self, examples: Sequence[Any], share: float, seed: int = 0) -> tuple[list, list]:
        return split_by_passage(examples, share, seed)

    def settings(self, options: Namespace, examples: Sequence[Any]) -> TaskSettings:
        if not any(example.answers for example in examples):
            raise DataError("No training question has an answer; training needs at least one.")
        extra = {
            "stride": options.stride,
            "question_length": options.question_length,
            "answer_length": options.answer_length,
            "no_answer": any(not example.answers for example in examples),
        }
        for name in ("stride", "question_length", "answer_length"):
            if extra[name] < 1:
                raise TaskError(f"--{name.replace('_', '-')} is {extra[name]}; it must be 1 or more.")
        if options.length < extra["question_length"] + _SPECIAL + 8:
            raise TaskError(
                f"--length is {options.length}; with questions of up to "
                f"{extra['question_length']} pieces it must be at least "
                f"{extra['question_length'] + _SPECIAL + 8}."
            )
        return TaskSettings(
            "answer", max_length=options.length, pair=True, metric=options.metric or "f1", extra={**_DEFAULTS, **extra}
        )

    def encode(
        self, examples: Sequence[Any], tokenizer: BaseTokenizer, settings: TaskSettings, training: bool = False
    ) -> EncodedExamples:
        extra = {**_DEFAULTS, **settings.extra}
        passages, notes, owner, targets = {}, [], [], []
        sequences: dict[str, list] = {"token_ids": [], "segment_ids": []}
        for number, example in enumerate(examples):
            if example.passage not in passages:
                passages[example.passage] = tokenizer.tokenize(example.passage)
            passage = passages[example.passage]
            question = tokenizer.tokenize(example.question).ids
            question = question[: min(extra["question_length"], settings.max_length // 2)]
            answer = _answer_pieces(example, passage.offsets) if training else None
            windows = pair_windows(tokenizer, question, passage.ids, settings.max_length, extra["stride"])
            for window, packed in windows:
                sequences["token_ids"].append(packed.token_ids)
                sequences["segment_ids"].append(packed.segment_ids)
                owner.append(number)
                # The window ends before the last separator.
                row = _RowWindow(window, packed.length - 1 - (window.end - window.start), passage.offsets)
                notes.append(row)
                if training:
                    targets.append(_target(example, answer, row))
        values = {}
        if training:
            starts, ends, weights = zip(*targets)
            values = {
                "starts": np.array(starts, np.int32),
                "ends": np.array(ends, np.int32),
                "weights": np.array(weights, np.float32),
            }
        return EncodedExamples(sequences, values, np.array(owner), tokenizer.pad_id, notes)

    def head(self, settings: TaskSettings, config: BertConfig) -> keras.layers.Layer:
        from bert_tf.layers.spans import SpanHead

        return SpanHead(config.hidden_size, config.initializer_range, **self.prediction(config), name="head")

    def head_shapes(self, settings: TaskSettings, config: BertConfig) -> dict[str, tuple[int, ...]]:
        name = "classifier" if config.architecture.prediction_head else "qa_outputs"
        return {**prediction_shapes(config), **dense_shapes(name, 2, config.hidden_size)}

    def head_outputs(
        self,
        tensors: Tensors,
        settings: TaskSettings,
        last_layer: str,
        sequence: np.ndarray,
        pooled: np.ndarray | None,
        padding_mask: np.ndarray,
    ) -> dict[str, np.ndarray]:
        scores = dense(tensors, "qa_outputs" if "qa_outputs.weight" in tensors else last_layer, sequence)
        return {"start_logits": scores[..., 0], "end_logits": scores[..., 1]}

    def objective(self, settings: TaskSettings) -> Callable[..., dict[str, Any]]:
        from bert_tf.finetuning.tasks.token_losses import SpanCrossEntropy

        return SpanCrossEntropy()

    def decode(
        self,
        outputs: Sequence[dict[str, np.ndarray]],
        rows: EncodedExamples,
        examples: Sequence[Any],
        settings: TaskSettings,
    ) -> list[dict[str, Any]]:
        extra = {**_DEFAULTS, **settings.extra}
        predictions, row = [], 0
        owners = np.asarray(rows.owner)
        for number, example in enumerate(examples):
            first = row
            while row < len(owners) and owners[row] == number:
                row += 1
            predictions.append(_answer(example, rows.notes[first:row], outputs[first:row], extra))
        return predictions

    def lines(self, prediction: dict[str, Any]) -> list[str] | None:
        span = f" ({prediction['start']} to {prediction['end']})" if prediction["answer"] else ""
        first = f"{prediction['answer'] or 'No answer'}{span}, {prediction['probability']:.1%}"
        return [first, *(f"    {answer['probability']:6.1%}  {answer['text']}" for answer in prediction["n_best"])]

    def tune(
        self,
        examples: Sequence[Any],
        outputs: Sequence[dict[str, np.ndarray]],
        rows: EncodedExamples,
        settings: TaskSettings,
    ) -> TaskSettings:
        if not settings.extra.get("no_answer"):
            return settings
        predictions = self.decode(outputs, rows, examples, settings)
        keys = range(len(examples))
        threshold, _ = best_threshold(
            {key: predictions[key]["best"]["text"] for key in keys},
            {key: predictions[key]["margin"] for key in keys},
            {key: examples[key].answer_texts for key in keys},
            "exact_match" if settings.metric == "exact_match" else "f1",
        )
        return settings.replace(extra={**settings.extra, "threshold": threshold})

    def score(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> dict[str, Any]:
        return squad_scores(
            {key: prediction["answer"] for key, prediction in enumerate(predictions)},
            {key: example.answer_texts for key, example in enumerate(examples)},
        )

    def metrics(self, settings: TaskSettings, examples: Sequence[Any]) -> tuple[str, ...]:
        has_answer = {bool(example.answers) for example in examples}
        answerable = ("answerable_exact_match", "answerable_f1") if len(has_answer) == 2 else ()
        return ("exact_match", "f1", *answerable, *(("unanswerable_accuracy",) if False in has_answer else ()))

    def findings(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> ErrorAnalysis:
        worst = []
        for example, prediction in zip(examples, predictions):
            exact, overlap = question_scores(prediction["answer"], example.answer_texts)
            if overlap < 1:
                worst.append(
                    {
                        "probability": prediction["probability"],
                        "f1": overlap,
                        "question": example.question,
                        "true": " | ".join(dict.fromkeys(example.answer_texts)) or "(no answer)",
                        "predicted": prediction["answer"] or "(no answer)",
                        "id": example.key,
                    }
                )
        worst.sort(key=lambda row: (row["f1"], -row["probability"]))
        return ErrorAnalysis(worst=worst, worst_errors_title="The worst errors")


def _answer_pieces(example, offsets):
    """(first, last) piece with a character of the first answer, or None. Pieces partly in the answer belong to it."""
    if not example.answers:
        return None
    start, text = example.answers[0]
    inside = [piece for piece, (first, last) in enumerate(offsets) if last > start and first < start + len(text)]
    return (inside[0], inside[-1]) if inside else None


def _target(example, answer, row):
    """(start token, end token, weight) of a row; [CLS] where the window does not hold the complete answer, as in
    run_squad.py. The weight is 0 if the answer has no pieces."""
    if answer is None:
        return 0, 0, 0.0 if example.answers else 1.0
    start, end = row.window
    if not (start <= answer[0] and answer[1] < end):
        return 0, 0, 1.0
    return row.offset + answer[0] - start, row.offset + answer[1] - start, 1.0


def _answer(example, rows, outputs, extra):
    offsets = rows[0].offsets
    window_of_piece = best_window([row.window for row in rows], len(offsets))
    spans, no_answer_scores = [], []
    for index, (row, output) in enumerate(zip(rows, outputs)):
        start, end = row.window
        inside = slice(row.offset, row.offset + end - start)
        for score, first, last in best_spans(
            output["start_logits"][inside],
            output["end_logits"][inside],
            extra["answer_length"],
            extra["n_best"],
            window_of_piece[start:end] == index,
        ):
            spans.append((score, offsets[start + first][0], offsets[start + last][1]))
        no_answer_scores.append(float(output["start_logits"][0]) + float(output["end_logits"][0]))
    # The same characters can come from two windows; the better score comes first and is kept.
    best_scores: dict[tuple[int, int], float] = {}
    for score, first, last in sorted(spans, key=lambda span: (-span[0], span[1], span[2])):
        best_scores.setdefault((first, last), score)
    return _prediction(
        example,
        list(best_scores.items())[: extra["n_best"]],
        min(no_answer_scores),
        extra,
        _curves(rows, outputs) if example.curves else {},
    )


def _prediction(example, spans, no_answer_score, extra, curves):
    scores = np.array([score for _, score in spans] + ([no_answer_score] if extra["no_answer"] else []), np.float64)
    if not len(scores):
        scores = np.zeros(1)
    exponentials = np.exp(scores - scores.max())
    probabilities = [float(probability) for probability in exponentials / exponentials.sum()]
    n_best = [
        {"text": example.passage[first:last], "start": first, "end": last, "score": score, "probability": probability}
        for ((first, last), score), probability in zip(spans, probabilities)
    ]
    best = n_best[0] if n_best else {"text": "", "start": 0, "end": 0, "score": no_answer_score, "probability": 0.0}
    margin = no_answer_score - best["score"]
    answered = bool(n_best) and not (extra["no_answer"] and margin > extra["threshold"])
    return {
        "id": example.key,
        "question": example.question,
        "answer": best["text"] if answered else "",
        "start": best["start"] if answered else None,
        "end": best["end"] if answered else None,
        "probability": best["probability"] if answered else probabilities[-1],
        "margin": margin,
        "best": best,
        "no_answer_probability": probabilities[-1] if extra["no_answer"] else None,
        "n_best": n_best,
        **curves,
    }


def _curves(rows, outputs):
    """The probabilities that the answer begins and ends at each piece of the passage."""
    offsets = rows[0].offsets
    curves: dict[str, list] = {"pieces": [list(span) for span in offsets]}
    for side in ("start", "end"):
        logits = merge(
            [row.window for row in rows],
            [output[f"{side}_logits"] for output in outputs],
            len(offsets),
            rows[0].offset,
        ).astype(np.float64)
        exponentials = np.exp(logits - logits.max(initial=-np.inf))
        probabilities = exponentials / max(exponentials.sum(), 1e-300)
        curves[f"{side}_probabilities"] = [float(probability) for probability in probabilities]
    return curves


TASK = QuestionAnswering()
