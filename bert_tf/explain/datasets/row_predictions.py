"""Predictions for the rows of a file: hidden words, next sentence, sentence order, replaced tokens, classes,
pseudo-perplexity.

Sources: as in `predictions` and `pseudo_likelihood`.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Optional, cast

import numpy as np

from bert_tf.errors import InputError, refuse_one_alone, report
from bert_tf.explain.attribution.target import classifier_settings, heads_of, reads_single_texts
from bert_tf.explain.datasets.pseudo_likelihood import pseudo_likelihood
from bert_tf.explain.datasets.text_rows import check_hide, hidden_words, split_labels
from bert_tf.inference.batch_predict import predict_many
from bert_tf.inference.model_inputs import prepare_input

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.tokenizers import Encoding


#: The predictions that can be asked for, and the head of each, as `heads_of` names it.
ASK = {
    "masks": "mlm",
    "next": "nsp",
    "order": "sop",
    "replaced": "replaced",
    "classes": "classes",
    "perplexity": "mlm",
}

# Rows in one forward pass. Few, because other requests wait for the model meanwhile.
_BLOCK = 8


@dataclass(frozen=True)
class RowResult:
    """A model's predictions for one row.

    Attributes:
        row: `TextRow`.
        tokens: int. The number of tokens read.
        cut: int. The number of tokens cut off.
        places: tuple. The positions of the hidden words, as `hidden_places` returns them.
        masks: tuple of `MaskPrediction`.
        is_next: float or None. P(IsNext).
        perplexity, log_likelihood: float or None. Those of the row without hidden words.
        problem: str or None. Why a prediction could not be made.
        in_order: float or None. P(in order).
        replaced: tuple of pairs (token, P(replaced)) without the special tokens that the model adds; None if not
            asked for.
        task_prediction: dict or None. The prediction of a fine-tuned classifier, as `TaskModel.predict` returns it;
            None if not asked for.
    """

    row: TextRow
    tokens: int = 0
    cut: int = 0
    places: tuple = ()
    masks: tuple = ()
    is_next: Optional[float] = None
    perplexity: Optional[float] = None
    log_likelihood: Optional[float] = None
    problem: Optional[str] = None
    in_order: Optional[float] = None
    replaced: Optional[tuple] = None
    task_prediction: Optional[dict] = None

    @property
    def label(self) -> str | None:
        """The label of the row, None without one; an empty one is "", no class, only with several classes a row."""
        return self.row.label if self.row.label or "labels" in (self.task_prediction or {}) else None

    @property
    def predicted(self) -> str | float | None:
        """The predicted class (several: "one|another"), in a regression the number; None if not asked for."""
        task_prediction = self.task_prediction or {}
        return (
            "|".join(task_prediction["labels"])
            if "labels" in task_prediction
            else task_prediction.get("label", task_prediction.get("value"))
        )

    @property
    def predicted_probability(self) -> float | None:
        """The probability of the predicted class; None for several classes, for a number and if not asked for."""
        return (self.task_prediction or {}).get("probability")

    @property
    def is_correct(self) -> bool | None:
        """Whether the predicted class is the one that the file names; None where there is nothing to compare."""
        task_prediction, label = self.task_prediction or {}, self.label
        classes = set(task_prediction.get("probabilities", ()))
        if label is None or not classes:
            return None
        true = set(split_labels(label)) if "labels" in task_prediction else {label}
        predicted = set(task_prediction["labels"]) if "labels" in task_prediction else {task_prediction["label"]}
        return predicted == true if true <= classes else None

    @property
    def suspected(self) -> int | None:
        """The number of tokens with P(replaced) above 0.5; None if not asked for."""
        return None if self.replaced is None else sum(score > 0.5 for _, score in self.replaced)

    @property
    def most_likely_replaced(self) -> tuple[str, float] | None:
        """The pair (token, P(replaced)) with the highest probability, or None."""
        return max(self.replaced, key=lambda pair: pair[1]) if self.replaced else None


@dataclass(frozen=True)
class RowSummary:
    """A summary of the results of `score_rows`.

    Attributes:
        rows: int. The number of rows.
        masks: int. The number of hidden tokens whose original is known.
        first: float or None. The share of them that is the first prediction.
        among: float or None. The share of them that is among the predictions.
        next: int. The number of rows with a next-sentence score.
        follows: float or None. The share of these rows with P(IsNext) above 0.5.
        perplexity: float or None. exp of the mean negative log-probability of all rows' tokens; None if not asked for.
        order: int. The number of rows with a sentence-order score.
        ordered: float or None. The share of these rows with P(in order) above 0.5.
        scored: int. The number of tokens with a replaced-token score.
        suspected: float or None. The share of these tokens with P(replaced) above 0.5.
    """

    rows: int
    masks: int
    first: Optional[float]
    among: Optional[float]
    next: int
    follows: Optional[float]
    perplexity: Optional[float]
    order: int = 0
    ordered: Optional[float] = None
    scored: int = 0
    suspected: Optional[float] = None


@dataclass(frozen=True)
class ClassSummary:
    """A comparison of the predicted classes with those that the file names.

    Attributes:
        rows: int. The number of rows compared.
        scores: dict str -> float. The metrics of `evaluate classify`: with one class a row "accuracy", "f1_macro" and
            others; empty where no row is compared.
        confusion: (labels, counts [K][K], one row per true label), or None with several classes a row.
        unknown: dict str -> int. Labels of the file that the model does not have -> number of rows with them, which are
            not compared.
    """

    rows: int
    scores: dict
    confusion: Optional[tuple] = None
    unknown: dict = field(default_factory=dict)


def supported_predictions(bert: Bert) -> tuple[str, ...]:
    """The names of `ASK` for which a model has the head, in the order of `ASK`."""
    return tuple(name for name, head in ASK.items() if head in heads_of(bert))


def score_rows(
    bert: Bert,
    rows: Sequence[TextRow],
    ask: Collection[str] = tuple(ASK),
    hide: str = "random",
    top_k: int = 5,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[RowResult, ...]:
    """A model's predictions for every row of a file.

    Args:
        bert: `Bert`. The model.
        rows: sequence of `TextRow`.
        ask: sequence of str, some of `ASK`. "masks" predicts the hidden words; "next" and "order" score pairs,
            "replaced" scores every token (all three on the texts with masks). "classes" classifies the texts without
            masks (text A alone where the classifier reads single texts). "perplexity" masks one token at a time: one
            forward pass per token.
        hide: str. As `how` in `hidden_words`.
        top_k: int. The number of predictions per mask.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        tuple of `RowResult`, in the order of the rows. A prediction for which the model has no head is left out.
    Raises:
        InputError: an unknown name in `ask`, or an unknown `hide`.
        Cancelled: by `progress`.
    """
    refuse_one_alone(ask, "predictions")
    check_hide(hide)
    unknown = set(ask) - set(ASK)
    if unknown:
        raise InputError(f"A model can be asked for {', '.join(ASK)}, not for {', '.join(sorted(unknown))}.")
    available = set(ask) & set(supported_predictions(bert))
    rows, results = list(rows), []
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        predicted = _predicted(bert, block, available, hide, top_k)
        # The perplexity first: a row without classes, as one text for a classifier of pairs, has it too.
        if "perplexity" in available:
            predicted = [
                _with_perplexity(bert, result, progress, start + place, len(rows))
                for place, result in enumerate(predicted)
            ]
        if "classes" in available:
            predicted = _with_classes(bert, predicted)
        results += predicted
        report(progress, len(results), len(rows))
    return tuple(results)


def summarise_rows(results: Sequence[RowResult]) -> RowSummary:
    """The `RowSummary` of a sequence of `RowResult`s."""
    masks = [mask for result in results for mask in result.masks if mask.original is not None]
    scores = [result.is_next for result in results if result.is_next is not None]
    orders = [result.in_order for result in results if result.in_order is not None]
    replaced = [score for result in results for _, score in result.replaced or ()]
    scored = [
        (result.perplexity, -result.log_likelihood)
        for result in results
        if result.perplexity is not None and result.log_likelihood is not None
    ]
    # The log-likelihood of a row is -tokens x log perplexity, so each row is weighted by its number of tokens.
    nats = sum(row_nats for _, row_nats in scored)
    tokens = sum(row_nats / np.log(perplexity) for perplexity, row_nats in scored if perplexity > 1)
    return RowSummary(
        rows=len(results),
        masks=len(masks),
        first=_share(mask.original_rank == 1 for mask in masks),
        among=_share(mask.original_rank <= len(mask.predictions) for mask in masks),
        next=len(scores),
        follows=_share(score > 0.5 for score in scores),
        perplexity=float(np.exp(nats / tokens)) if tokens else None,
        order=len(orders),
        ordered=_share(score > 0.5 for score in orders),
        scored=len(replaced),
        suspected=_share(score > 0.5 for score in replaced),
    )


def summarise_classes(bert: Bert, results: Sequence[RowResult]) -> ClassSummary:
    """Compare the predicted classes with those that the file names.

    Args:
        bert: `Bert`. The model that made the results.
        results: sequence of `RowResult`.
    Returns:
        `ClassSummary`. The metrics are computed by scikit-learn, those of numbers by SciPy.
    Raises:
        InputError: the model is no classifier.
    """
    from bert_tf.finetuning.data.sentence_examples import SentenceExample

    settings = classifier_settings(bert)
    if bert.task is None or settings is None:
        raise InputError(f"{bert.name} was not fine-tuned to classify texts; it has no classes.")
    labelled, unknown = compared(settings, results)
    examples = [SentenceExample(result.row.text_a, result.row.text_b, target) for result, target in labelled]
    # `compared` leaves out the rows without a prediction.
    task_predictions = [cast(dict[str, Any], result.task_prediction) for result, _ in labelled]
    if not examples:
        return ClassSummary(0, {}, unknown=dict(unknown))
    scores = bert.task.task_type.score(examples, task_predictions, settings)
    confusion = bert.task.task_type.findings(examples, task_predictions, settings).confusion
    return ClassSummary(len(examples), scores, confusion, dict(unknown))


def compared(settings: TaskSettings, results: Iterable[RowResult]) -> tuple[list[tuple[RowResult, Any]], Counter]:
    """The results whose row has a label (`RowResult.label`), with that label as the task's target.

    Args:
        settings: `TaskSettings`.
        results: sequence of `RowResult`.
    Returns:
        (list of pairs (`RowResult`, target), `Counter` of the labels that the task does not have).
    """
    labelled: list[tuple[RowResult, Any]] = []
    unknown: Counter[str] = Counter()
    for result in results:
        if result.task_prediction is None or result.label is None:
            continue
        target = _target(result.label, settings)
        if target is None:
            unknown[result.label] += 1
        else:
            labelled.append((result, target))
    return labelled, unknown


def _target(label, settings):
    """A label of a file as the task's target: a class, a tuple of classes or a number; None if the task lacks it."""
    if settings.regression:
        try:
            number = float(label)
        except ValueError:
            return None
        return number if math.isfinite(number) else None
    labels = tuple(sorted(set(split_labels(label)))) if settings.multi_label else (label,)
    if not set(labels) <= set(settings.labels):
        return None
    return labels if settings.multi_label else label


def _share(flags):
    flags = list(flags)
    return sum(flags) / len(flags) if flags else None


def _predicted(bert, rows, available, hide, top_k):
    """A `RowResult` for each row, with the predictions of the pre-training heads."""
    prepared = [_prepared(bert, row, available, hide) for row in rows]
    results = [result for result, _ in prepared]
    places = [place for place, (result, ready) in enumerate(prepared) if _is_question(result, ready, available)]
    questions = [(rows[place].text_a, rows[place].text_b, prepared[place][1].masks) for place in places]
    for place, answer in zip(places, predict_many(bert, questions, _BLOCK, top_k, errors="return")):
        if isinstance(answer, Exception):
            results[place] = replace(results[place], problem=str(answer))
            continue
        results[place] = replace(
            results[place],
            masks=answer.masks if "masks" in available else (),
            is_next=answer.nsp.is_next if answer.nsp and "next" in available else None,
            in_order=answer.sop.in_order if answer.sop and "order" in available else None,
            replaced=_text_scores(answer, prepared[place][1]) if "replaced" in available else None,
        )
    return results


def _text_scores(answer, ready):
    """Pairs (token, score) of the texts' tokens, without the special tokens that the model adds."""
    sources = ready.encoding.sources
    return tuple(
        (token, score) for token, score, source in zip(answer.tokens, answer.replaced, sources) if source is not None
    )


def _prepared(bert, row, available, hide):
    """(`RowResult` with its tokens and hidden words, the prepared input or None where the row cannot be read)."""
    text_b = _second(bert, row) if available == {"classes"} else row.text_b
    try:
        ready = prepare_input(bert.tokenizer, bert.max_length, row.text_a, text_b)
        if "masks" in available:
            mask = hidden_words(row, ready.encoding, hide, mask_tokens=(bert.tokenizer.mask_token,))
            ready = prepare_input(bert.tokenizer, bert.max_length, row.text_a, row.text_b, mask)
    except ValueError as error:
        return RowResult(row, problem=str(error)), None
    typed = ready.encoding.token_ids == bert.tokenizer.mask_id
    places = hidden_places(ready.encoding, [position for position in ready.masks if not typed[position]])
    length, cut = ready.encoding.length, sum(ready.encoding.truncated)
    return RowResult(row, length, cut, places), ready


def _is_question(result, ready, available):
    """Whether there is anything to predict with the pre-training heads in a row."""
    pair = result.row.text_b and {"next", "order"} & available
    return result.problem is None and bool(ready.masks or pair or "replaced" in available)


def hidden_places(read: Encoding | Trace, positions: Collection[int]) -> tuple[tuple, ...]:
    """The words and pieces at some token positions.

    Args:
        read: `Encoding` or `Trace`. Its `sources` and `word_ids` are used.
        positions: sequence of int. The token positions, without those of a typed "[MASK]".
    Returns:
        tuple of (source, word number, piece number); the piece is -1 where all pieces of the word are among the
        positions.
    """
    pieces: dict[tuple, list[int]] = {}
    for position, word in enumerate(zip(read.sources, read.word_ids)):
        pieces.setdefault(word, []).append(position)
    places = []
    for position in positions:
        word = read.sources[position], read.word_ids[position]
        is_complete = set(pieces[word]) <= set(positions)
        places.append((*word, -1 if is_complete else pieces[word].index(position)))
    return tuple(dict.fromkeys(places))


def _second(bert, row):
    """The text B of a row for the classifier: None where it reads single texts."""
    return None if reads_single_texts(bert) else row.text_b


def _with_classes(bert, results):
    inputs: list[Any] = [(result.row.text_a, _second(bert, result.row)) for result in results]
    if classifier_settings(bert).pair:
        error = InputError("This model classifies pairs, and this row has one text.")
        inputs = [pair if pair[1] else error for pair in inputs]
    answers = bert.task.predict_many(inputs, _BLOCK, errors="return")
    return [
        replace(result, problem=result.problem or str(answer))
        if isinstance(answer, Exception)
        else replace(result, task_prediction=answer)
        for result, answer in zip(results, answers)
    ]


def _with_perplexity(bert, result, progress, done, total):
    if result.problem is not None:
        return result
    row = result.row
    try:
        # The callback counts rows, and it can still cancel between two tokens of a row.
        scores = pseudo_likelihood(
            bert, row.text_a, row.text_b, progress=progress and (lambda *_: progress(done, total))
        )
    except ValueError as error:
        return replace(result, problem=str(error))
    return replace(result, perplexity=scores.perplexity, log_likelihood=scores.total)
