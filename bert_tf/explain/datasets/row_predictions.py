"""A file of texts asked at once: hidden words, next sentence or sentence order, replaced tokens, classes,
pseudo-perplexity.

Sources as in `predictions` and `pseudo_likelihood`.
"""

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Optional

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attribution.target import classifier_settings
from bert_tf.explain.datasets.pseudo_likelihood import pseudo_likelihood
from bert_tf.explain.datasets.text_rows import hidden_words
from bert_tf.inference.batch_predict import predict_many
from bert_tf.inference.model_inputs import prepare_input

#: What may be asked for, and the head that answers it; "task" is that of a model fine-tuned to classify.
ASK = {
    "masks": "mlm",
    "next": "nsp",
    "order": "sop",
    "replaced": "replaced",
    "classes": "task",
    "perplexity": "mlm",
}

# Rows in one forward pass: few, for others wait for the model meanwhile.
_BLOCK = 8


@dataclass(frozen=True)
class RowResult:
    """What a model says about one row.

    Attributes:
        row: the `Row`. tokens: how many were read. cut: how many did not fit.
        places: where the hidden words stand, as `hidden_places` names them.
        masks: `MaskPrediction`s. is_next: P(IsNext), or None.
        perplexity, log_likelihood: of the row without anything hidden, or None.
        problem: why something that was asked could not be answered, or None.
        in_order: P(in order), or None.
        replaced: pairs (token, P(replaced)) of the texts' own tokens; None if unasked.
        task_prediction: what a fine-tuned classifier says, a dict as `TaskModel.predict` gives it; None if unasked.
    """

    row: object
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
    def predicted(self):
        """The class found, of several "one|another", of a regression the number; None if unasked."""
        task_prediction = self.task_prediction or {}
        return (
            "|".join(task_prediction["labels"])
            if "labels" in task_prediction
            else task_prediction.get("label", task_prediction.get("value"))
        )

    @property
    def predicted_probability(self):
        """That of the class found; None of several classes, of a number, and if unasked."""
        return (self.task_prediction or {}).get("probability")

    @property
    def is_correct(self):
        """Whether the class found is the one that the file names; None where there is nothing to compare."""
        task_prediction, label = self.task_prediction or {}, self.row.label
        known = set(task_prediction.get("probabilities", ()))
        if label is None or not known:
            return None
        true = _parts(label) if "labels" in task_prediction else {label}
        found = set(task_prediction["labels"]) if "labels" in task_prediction else {task_prediction["label"]}
        return found == true if true <= known else None

    @property
    def suspected(self):
        """How many tokens are rather replaced than not; None if unasked."""
        return None if self.replaced is None else sum(score > 0.5 for _, score in self.replaced)

    @property
    def most_likely_replaced(self):
        """The pair (token, P(replaced)) of the greatest probability, or None."""
        return max(self.replaced, key=lambda one: one[1]) if self.replaced else None


@dataclass(frozen=True)
class RowSummary:
    """`score_rows` in numbers.

    Attributes:
        rows: how many. masks: hidden words whose original is known; first, among: the share of them that was
            the first guess, one of the guesses. next: rows with a score; follows: the share above one half.
        perplexity: exp of the mean negative log-probability of all rows' tokens; None if unasked.
        order: rows with a score; ordered: the share above one half. scored: tokens with a score; suspected: the
            share above one half.
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
    """The classes of `score_rows` compared with those that the file names.

    Attributes:
        rows: how many are compared.
        scores: metric -> number, as `evaluate classify` has them: of one class a row "accuracy", "f1_macro" and
            others; empty where no row is compared.
        confusion: (labels, counts [K][K], a row a true label) of one class a row, else None.
        unknown: labels of the file that are none of the model's -> number of rows, which are not compared.
    """

    rows: int
    scores: dict
    confusion: Optional[tuple] = None
    unknown: dict = field(default_factory=dict)


def supported_predictions(bert):
    """What of `ASK` a model has a head for, in that order."""
    heads = {*bert.heads, *(["task"] if classifier_settings(bert) else [])}
    return tuple(name for name, head in ASK.items() if head in heads)


def score_rows(bert, rows, ask=tuple(ASK), hide="random", top_k=5, progress=None):
    """Ask a model about every row of a file.

    Args:
        bert: a `Bert`. rows: `Row`s.
        ask: some of `ASK`: "masks" predicts hidden words; "next" and "order" score pairs, "replaced" every token
            (all three with the hidden words hidden); "classes" asks a fine-tuned classifier about the row with
            nothing hidden (one for single texts about text A); "perplexity" masks one token at a time: as many
            passes as tokens.
        hide: as in `hidden_words`. top_k: predictions a mask.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        tuple of `RowResult`, in the order of the rows. What the model has no head for is not asked.
    Raises:
        InputError: an unknown `ask` or `hide`. Cancelled: by `progress`.
    """
    unknown = set(ask) - set(ASK)
    if unknown:
        raise InputError(f"A model can be asked for {', '.join(ASK)}, not for {', '.join(sorted(unknown))}.")
    able = set(ask) & set(supported_predictions(bert))
    rows, results = list(rows), []
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        found = _predicted(bert, block, able, hide, top_k)
        if "classes" in able:
            found = _with_classes(bert, found)
        if "perplexity" in able:
            found = [_with_perplexity(bert, one, progress, start + place, len(rows)) for place, one in enumerate(found)]
        results += found
        report(progress, len(results), len(rows))
    return tuple(results)


def summarise_rows(results):
    """`RowResult`s in numbers: `RowSummary`."""
    masks = [mask for one in results for mask in one.masks if mask.original is not None]
    scores = [one.is_next for one in results if one.is_next is not None]
    orders = [one.in_order for one in results if one.in_order is not None]
    replaced = [score for one in results for _, score in one.replaced or ()]
    scored = [one for one in results if one.perplexity is not None]
    # log p of a row is -tokens x log perplexity: weighted so, long rows count as long.
    nats = sum(-one.log_likelihood for one in scored)
    tokens = sum(-one.log_likelihood / np.log(one.perplexity) for one in scored if one.perplexity > 1)
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


def summarise_classes(bert, results):
    """How often the classes found are those that the file names.

    Args:
        bert: the model that was asked. results: `RowResult`s.
    Returns:
        `ClassSummary`, by scikit-learn (of numbers by SciPy).
    Raises:
        InputError: the model is no classifier.
    """
    from bert_tf.finetuning.data.sentence_examples import SentenceExample

    settings = classifier_settings(bert)
    if settings is None:
        raise InputError(f"{bert.name} was not fine-tuned to classify texts; it has no classes.")
    found, unknown = compared(settings, results)
    examples = [SentenceExample(one.row.text_a, one.row.text_b, target) for one, target in found]
    task_prediction = [one.task_prediction for one, _ in found]
    if not examples:
        return ClassSummary(0, {}, unknown=dict(unknown))
    scores = bert.task.family.score(examples, task_prediction, settings)
    confusion = bert.task.family.findings(examples, task_prediction, settings).confusion
    return ClassSummary(len(examples), scores, confusion, dict(unknown))


def compared(settings, results):
    """Of `RowResult`s those whose file names a class, or a number, of the task's.

    Args: settings: `TaskSettings`.
    Returns: (list of pairs (`RowResult`, target), labels that are none of the task's -> number of rows).
    """
    found, unknown = [], Counter()
    for one in results:
        if one.task_prediction is None or one.row.label is None:
            continue
        target = _target(one.row.label, settings)
        if target is None:
            unknown[one.row.label] += 1
        else:
            found.append((one, target))
    return found, unknown


def _target(label, settings):
    """A label of a file as the task takes it: a class, classes or a number; None where it is none of the task's."""
    if settings.regression:
        try:
            number = float(label)
        except ValueError:
            return None
        return number if math.isfinite(number) else None
    parts = tuple(sorted(_parts(label))) if settings.multi_label else (label,)
    if not set(parts) <= set(settings.labels):
        return None
    return parts if settings.multi_label else label


def _parts(label):
    return {part.strip() for part in label.split("|") if part.strip()}


def _share(yes):
    yes = list(yes)
    return sum(yes) / len(yes) if yes else None


def _predicted(bert, rows, able, hide, top_k):
    """A `RowResult` a row, with all but perplexity in it."""
    read = [_read(bert, row, able, hide) for row in rows]
    found = [result for result, _ in read]
    wanted = [place for place, (result, ready) in enumerate(read) if _asks(result, ready, able)]
    asked = [(rows[place].text_a, rows[place].text_b, read[place][1].masks) for place in wanted]
    for place, answer in zip(wanted, predict_many(bert, asked, _BLOCK, top_k, errors="return")):
        if isinstance(answer, Exception):
            found[place] = replace(found[place], problem=str(answer))
            continue
        found[place] = replace(
            found[place],
            masks=answer.masks if "masks" in able else (),
            is_next=answer.nsp.is_next if answer.nsp and "next" in able else None,
            in_order=answer.sop.in_order if answer.sop and "order" in able else None,
            replaced=_own_scores(answer, read[place][1]) if "replaced" in able else None,
        )
    return found


def _own_scores(answer, ready):
    """Pairs (token, score) of the texts' own tokens, without those the model adds."""
    sources = ready.encoding.sources
    return tuple(
        (token, score) for token, score, source in zip(answer.tokens, answer.replaced, sources) if source is not None
    )


def _read(bert, row, able, hide):
    """(`RowResult` that knows what is read and hidden, the prepared row; None where it cannot be read)."""
    most, text_b = bert.max_length, row.text_b
    if able == {"classes"}:
        most, text_b = min(most, classifier_settings(bert).max_length), _second(bert, row)
    try:
        ready = prepare_input(bert.tokenizer, most, row.text_a, text_b)
        if "masks" in able:
            mask = hidden_words(row, ready.encoding, hide)
            ready = prepare_input(bert.tokenizer, bert.max_length, row.text_a, row.text_b, mask)
    except ValueError as error:
        return RowResult(row, problem=str(error)), None
    typed = ready.encoding.token_ids == bert.tokenizer.mask_id
    places = hidden_places(ready.encoding, [one for one in ready.masks if not typed[one]])
    length, cut = ready.encoding.length, sum(ready.encoding.truncated)
    return RowResult(row, length, cut, places), ready


def _asks(result, ready, able):
    pair = result.row.text_b and {"next", "order"} & able
    return result.problem is None and bool(ready.masks or pair or "replaced" in able)


def hidden_places(read, positions):
    """Where tokens stand in their texts: (source, word, piece), a word that is there in full with piece -1.

    Args:
        read: has `sources` and `word_ids` (an `Encoding` or a `Trace`). positions: of the tokens; a typed
            "[MASK]" hides nothing that stands anywhere, so leave it out.
    """
    pieces = {}
    for position, place in enumerate(zip(read.sources, read.word_ids)):
        pieces.setdefault(place, []).append(position)
    found = []
    for position in positions:
        place = read.sources[position], read.word_ids[position]
        whole = set(pieces[place]) <= set(positions)
        found.append((*place, -1 if whole else pieces[place].index(position)))
    return tuple(dict.fromkeys(found))


def _second(bert, row):
    """The text B that a classifier reads of a row: none where it judges single texts."""
    return None if classifier_settings(bert).pair is False else row.text_b


def _with_classes(bert, found):
    asked = [(one.row.text_a, _second(bert, one.row)) for one in found]
    if classifier_settings(bert).pair:
        lack = InputError("This model judges pairs, and this row is one text.")
        asked = [pair if pair[1] else lack for pair in asked]
    answers = bert.task.predict_many(asked, _BLOCK, errors="return")
    return [
        replace(one, problem=one.problem or str(answer))
        if isinstance(answer, Exception)
        else replace(one, task_prediction=answer)
        for one, answer in zip(found, answers)
    ]


def _with_perplexity(bert, result, progress, done, total):
    if result.problem is not None:
        return result
    row = result.row
    try:
        # Counts rows, not its own tokens; yet it can be stopped between them.
        found = pseudo_likelihood(
            bert, row.text_a, row.text_b, progress=progress and (lambda *_: progress(done, total))
        )
    except ValueError as error:
        return replace(result, problem=str(error))
    return replace(result, perplexity=found.perplexity, log_likelihood=found.total)
