"""Predictions for any number of texts: batches sorted by length within a bounded window, results in input order.

Dimension legend: B batch, T tokens, P masks, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, refuse_one_alone
from bert_tf.inference.answer import Answer, check_question
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import (
    MaskPrediction,
    check_top_k,
    mask_predictions,
    target_ids,
)
from bert_tf.inference.trace import NextSentence, SentenceOrder, sigmoid
from bert_tf.runtime.read_ahead import check_batch_size, check_errors, read_ahead_windows, read_row
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:  # it imports this module
    from bert_tf.inference.bert import Bert

# The largest number of masks in a batch, with padding: their logits over 30,000 tokens then take 60 MB.
MASKS_PER_BATCH = 512
# A forward pass costs about as much as 16 more tokens in another one: with more padding than that, two are quicker.
PADDING_PER_BATCH = 16


def predict_many(
    bert: Bert,
    rows: Iterable[Any],
    batch_size: int = 32,
    top_k: int = 5,
    errors: str = "raise",
    targets: str | Sequence[str] = (),
) -> Iterator[Any]:
    """Predict for any number of inputs, in their order and in constant memory.

    Args:
        bert: `Bert`. The model.
        rows: iterable of (text_a, text_b or None, mask), with `mask` as in `Bert.trace`; the last one or two may be
            left out, and a text alone is a row too. A row can be an exception, which is treated as the error of this
            row, so that the reader of a file can report a bad line in its place.
        batch_size: int. The largest number of rows in one forward pass. With 1, the result of each row is yielded
            before the next row is read.
        top_k: int. The number of predictions at each mask.
        errors: str. "raise" stops at the first row with an error; "return" yields the exception instead of an
            `Answer`.
        targets: sequence of str. Words whose probability is returned at every mask, as in `fill_mask`.

    Yields:
        `Answer` or an exception, one for each row.

    Raises:
        InputError: `rows`, `batch_size`, `top_k`, `errors` or a target is invalid; with "raise" also the error of a
            row.
    """
    refuse_one_alone(rows, "rows")
    _check(batch_size, top_k, errors)
    return _stream(bert, rows, batch_size, top_k, errors, target_ids(bert.tokenizer, targets))


def predict_together(
    bert: Bert, rows: Sequence[Any], batch_size: int = 32, top_k: int = 5, targets: str | Sequence[str] = ()
) -> Iterator[tuple[int, Any]]:
    """Predict for a few inputs that fit in memory; each answer as soon as its forward pass is done.

    Args:
        bert, rows, batch_size, top_k, targets: as for `predict_many`.

    Yields:
        (number of the row from 0, `Answer` or an exception), in any order.

    Raises:
        InputError: `batch_size`, `top_k` or a target is invalid.
    """
    _check(batch_size, top_k, "return")
    return _answers(bert, rows, batch_size, top_k, "return", target_ids(bert.tokenizer, targets))


def _check(batch_size, top_k, errors):
    check_top_k(top_k)
    check_batch_size(batch_size)
    check_errors(errors)


def _stream(bert, rows, batch_size, top_k, errors, asked):
    for window in read_ahead_windows(rows, batch_size):
        answers: list[Any] = [None] * len(window)
        for index, answer in _answers(bert, window, batch_size, top_k, errors, asked):
            answers[index] = answer
        yield from answers


def _answers(bert, rows, batch_size, top_k, errors, asked):
    prepared = {}
    for index, row in enumerate(rows):
        result = read_row(row, partial(_prepare, bert), errors)
        if isinstance(result, Exception):
            yield index, result
        else:
            prepared[index] = result
    for indices in _batches(prepared, batch_size):
        yield from zip(indices, _run(bert, [prepared[index] for index in indices], top_k, asked), strict=True)


def _prepare(bert, row):
    if isinstance(row, (bytes, Mapping)) or not isinstance(row, Iterable):
        raise InputError(f"A row is a text or (text_a, text_b or None, mask), not {type(row).__name__} ({row!r:.60}).")
    values = (row,) if isinstance(row, str) else tuple(row)
    if not 1 <= len(values) <= 3:
        raise InputError(f"A row is (text_a, text_b or None, mask), not {len(values)} values ({values!r:.60}).")
    prepared = prepare_input(bert.tokenizer, bert.max_length, *values)
    check_question(prepared.masks, prepared.text_b, bert.heads, bert.name)
    return prepared


def _batches(prepared, batch_size):
    """Indices of inputs of similar length, batch by batch, so that the batches have little padding."""

    def cost(index):
        return len(prepared[index].token_ids), len(prepared[index].masks)

    batch: list[int] = []
    most_masks = padding = 0
    for index in sorted(prepared, key=cost):
        length, masks = cost(index)
        if batch:
            most_masks = max(most_masks, masks)
            padding += len(batch) * (length - cost(batch[-1])[0])
            is_full = len(batch) == batch_size or most_masks * (len(batch) + 1) > MASKS_PER_BATCH
            if is_full or padding > PADDING_PER_BATCH:
                yield batch
                batch, padding = [], 0
        if not batch:
            most_masks = masks
        batch.append(index)
    if batch:
        yield batch


def _run(bert, batch, top_k, asked):
    inputs = pad_batch(batch, pad_id=bert.tokenizer.pad_id)
    most_masks = max(len(prepared.masks) for prepared in batch)
    outputs = []
    if most_masks:
        inputs["mask_positions"] = np.zeros((len(batch), most_masks), np.int32)
        for row, prepared in enumerate(batch):
            inputs["mask_positions"][row, : len(prepared.masks)] = prepared.masks
        outputs.append("mlm_logits")
    paired = any(prepared.text_b is not None for prepared in batch)
    outputs += [f"{head}_logits" for head in ("nsp", "sop") if paired and head in bert.heads]
    outputs += ["replaced_logits"] if "replaced" in bert.heads else []
    results = bert.runtime.run(inputs, tuple(outputs))
    for row, prepared in enumerate(batch):
        masks: tuple[MaskPrediction, ...] = ()
        nsp, sop, replaced = None, None, None
        if prepared.masks:
            logits = results["mlm_logits"][row, : len(prepared.masks)]
            masks = mask_predictions(logits, prepared.masks, prepared.original_ids, bert.tokenizer, top_k, asked)
        if prepared.text_b is not None and "nsp" in bert.heads:
            nsp = NextSentence.from_logits(results["nsp_logits"][row])
        if prepared.text_b is not None and "sop" in bert.heads:
            sop = SentenceOrder.from_logits(results["sop_logits"][row])
        if "replaced" in bert.heads:
            replaced = tuple(map(float, sigmoid(results["replaced_logits"][row, : len(prepared.token_ids)])))
        tokens = tuple(bert.tokenizer.vocab[index] for index in prepared.token_ids)
        yield Answer(bert.name, tokens, masks, nsp, prepared.encoding.truncated, sop, replaced)
