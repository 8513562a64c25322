"""Predictions for any number of texts: length-sorted batches within a bounded window, answers in the order asked.

Dimension legend: B batch, T tokens, P masks, V vocabulary.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from bert_tf.explain.answer import Answer, check_question
from bert_tf.explain.errors import InputError, checked_pair
from bert_tf.explain.masking import resolve_masks
from bert_tf.explain.predictions import check_top_k, mask_predictions
from bert_tf.explain.trace import NextSentence
from bert_tf.text import pad_batch

# Batches sorted together. More gives tighter batches, and longer to wait for the first answer.
WINDOW_BATCHES = 32

# Most masks a batch is padded to, all rows together: their logits over 30,000 tokens are then 60 MB.
MASKS_IN_BATCH = 512


@dataclass(frozen=True, eq=False)
class _Job:
    """A row ready for the model; `token_ids` and `segment_ids` are what `pad_batch` takes."""

    place: int
    token_ids: np.ndarray
    segment_ids: np.ndarray
    masks: tuple
    original_ids: np.ndarray
    is_pair: bool
    truncated: tuple


def predict_many(bert, rows, batch_size=32, top_k=5, errors="raise"):
    """Answer any number of inputs, in order and in constant memory.

    Args:
        bert: a `Bert`.
        rows: iterable of (text_a, text_b or None, mask), `mask` as in `Bert.trace`. A row that is an exception is
            handed on as that row's answer, so that a reader of a file can tell of a bad line in its place.
        batch_size: most rows in one forward pass.
        top_k: predictions a mask.
        errors: "raise" stops at the first bad row, "return" yields its exception in place of an answer.
    Yields:
        `Answer`, or an exception, one a row.
    Raises:
        InputError: a bad `batch_size`, `top_k` or `errors`; and with "raise" whatever is wrong with a row.
    """
    check_top_k(top_k)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InputError(f"batch_size must be a whole number of at least 1, not {batch_size!r}.")
    if errors not in ("raise", "return"):
        raise InputError(f'errors must be "raise" or "return", not {errors!r}.')
    return _stream(bert, iter(rows), batch_size, top_k, errors)


def _stream(bert, rows, batch_size, top_k, errors):
    while window := list(islice(rows, batch_size * WINDOW_BATCHES)):
        answers, jobs = [None] * len(window), []
        for place, row in enumerate(window):
            try:
                jobs.append(_prepare(bert, place, row))
            except ValueError as error:
                if errors == "raise":
                    raise
                answers[place] = error
        for batch in _batches(jobs, batch_size):
            for job, answer in zip(batch, _run(bert, batch, top_k)):
                answers[job.place] = answer
        yield from answers


def _prepare(bert, place, row):
    if isinstance(row, Exception):
        raise row
    text_a, text_b, mask = row
    text_a, text_b = checked_pair(text_a, text_b)
    encoding = bert.encode(text_a, text_b)
    masks = resolve_masks(encoding, text_a, text_b, mask, "token", bert.tokenizer)
    check_question(masks, text_b, bert.heads, bert.name)
    ids = np.array(encoding.token_ids)
    ids[list(masks)] = bert.tokenizer.mask_id
    originals = encoding.token_ids[list(masks)]
    return _Job(place, ids, encoding.segment_ids, masks, originals, text_b is not None, encoding.truncated)


def _batches(jobs, batch_size):
    """Jobs of like length together, so that little of a batch is padding."""
    batch, most_masks = [], 0
    for job in sorted(jobs, key=lambda job: (len(job.token_ids), len(job.masks))):
        most_masks = max(most_masks, len(job.masks))
        if len(batch) == batch_size or batch and most_masks * (len(batch) + 1) > MASKS_IN_BATCH:
            yield batch
            batch, most_masks = [], len(job.masks)
        batch.append(job)
    if batch:
        yield batch


def _run(bert, batch, top_k):
    inputs = pad_batch(batch, pad_id=bert.tokenizer.pad_id)
    most_masks = max(len(job.masks) for job in batch)
    outputs = []
    if most_masks:
        inputs["mask_positions"] = np.zeros((len(batch), most_masks), np.int32)
        for row, job in enumerate(batch):
            inputs["mask_positions"][row, : len(job.masks)] = job.masks
        outputs.append("mlm_logits")
    if "nsp" in bert.heads and any(job.is_pair for job in batch):
        outputs.append("nsp_logits")
    results = bert.runtime.run(inputs, tuple(outputs))
    for row, job in enumerate(batch):
        masks = ()
        if job.masks:
            logits = results["mlm_logits"][row, : len(job.masks)]
            masks = mask_predictions(logits, job.masks, job.original_ids, bert.tokenizer, top_k)
        nsp = NextSentence.from_logits(results["nsp_logits"][row]) if job.is_pair and "nsp" in bert.heads else None
        tokens = tuple(bert.tokenizer.vocab[i] for i in job.token_ids)
        yield Answer(bert.name, tokens, masks, nsp, job.truncated)
