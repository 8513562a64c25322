"""Predictions for any number of texts: length-sorted batches in a bounded window, answers in the order asked.

Dimension legend: B batch, T tokens, P masks, V vocabulary.
"""

import numpy as np

from bert_tf.errors import InputError
from bert_tf.inference.answer import Answer, check_question
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import (
    check_top_k,
    mask_predictions,
    target_ids,
)
from bert_tf.inference.trace import NextSentence, SentenceOrder, sigmoid
from bert_tf.read_ahead import read_ahead_windows
from bert_tf.tokenizers import pad_batch

# Most masks a batch is padded to, all rows together: their logits over 30,000 tokens are then 60 MB.
MASKS_PER_BATCH = 512


def predict_many(bert, rows, batch_size=32, top_k=5, errors="raise", targets=()):
    """Answer any number of inputs, in order and in constant memory.

    Args:
        bert: a `Bert`.
        rows: iterable of (text_a, text_b or None, mask), `mask` as in `Bert.trace`. A row that is an
            exception is handed on as that row's answer, so that a reader of a file can tell of a bad line in
            its place.
        batch_size: most rows in one forward pass; with 1 each row is answered before the next one is read.
        top_k: predictions a mask.
        errors: "raise" stops at the first bad row, "return" yields its exception in place of an answer.
        targets: words to ask about at every mask, as `fill_mask` takes them.
    Yields:
        `Answer`, or an exception, one a row.
    Raises:
        InputError: a bad `batch_size`, `top_k`, `errors` or target; and with "raise" whatever is wrong with a row.
    """
    check_top_k(top_k)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InputError(f"batch_size must be a whole number of at least 1, not {batch_size!r}.")
    if errors not in ("raise", "return"):
        raise InputError(f'errors must be "raise" or "return", not {errors!r}.')
    return _stream(bert, rows, batch_size, top_k, errors, target_ids(bert.tokenizer, targets))


def _stream(bert, rows, batch_size, top_k, errors, asked):
    for window in read_ahead_windows(rows, batch_size):
        answers, prepared = [None] * len(window), {}
        for place, row in enumerate(window):
            try:
                prepared[place] = _prepare(bert, row)
            except ValueError as error:
                if errors == "raise":
                    raise
                answers[place] = error
        for places in _batches(prepared, batch_size):
            batch = [prepared[place] for place in places]
            for place, answer in zip(places, _run(bert, batch, top_k, asked)):
                answers[place] = answer
        yield from answers


def _prepare(bert, row):
    if isinstance(row, Exception):
        raise row
    prepared = prepare_input(bert.tokenizer, bert.max_length, *row)
    check_question(prepared.masks, prepared.text_b, bert.heads, bert.name)
    return prepared


def _batches(prepared, batch_size):
    """Places of inputs of like length together, so that little of a batch is padding."""

    def cost(place):
        return len(prepared[place].token_ids), len(prepared[place].masks)

    batch, most_masks = [], 0
    for place in sorted(prepared, key=cost):
        masks = len(prepared[place].masks)
        most_masks = max(most_masks, masks)
        if len(batch) == batch_size or batch and most_masks * (len(batch) + 1) > MASKS_PER_BATCH:
            yield batch
            batch, most_masks = [], masks
        batch.append(place)
    if batch:
        yield batch


def _run(bert, batch, top_k, asked):
    inputs = pad_batch(batch, pad_id=bert.tokenizer.pad_id)
    most_masks = max(len(one.masks) for one in batch)
    outputs = []
    if most_masks:
        inputs["mask_positions"] = np.zeros((len(batch), most_masks), np.int32)
        for row, one in enumerate(batch):
            inputs["mask_positions"][row, : len(one.masks)] = one.masks
        outputs.append("mlm_logits")
    paired = any(one.text_b is not None for one in batch)
    outputs += [f"{head}_logits" for head in ("nsp", "sop") if paired and head in bert.heads]
    outputs += ["replaced_logits"] if "replaced" in bert.heads else []
    results = bert.runtime.run(inputs, tuple(outputs))
    for row, one in enumerate(batch):
        masks, nsp, sop, replaced = (), None, None, None
        if one.masks:
            logits = results["mlm_logits"][row, : len(one.masks)]
            masks = mask_predictions(logits, one.masks, one.original_ids, bert.tokenizer, top_k, asked)
        if one.text_b is not None and "nsp" in bert.heads:
            nsp = NextSentence.from_logits(results["nsp_logits"][row])
        if one.text_b is not None and "sop" in bert.heads:
            sop = SentenceOrder.from_logits(results["sop_logits"][row])
        if "replaced" in bert.heads:
            replaced = tuple(map(float, sigmoid(results["replaced_logits"][row, : len(one.token_ids)])))
        tokens = tuple(bert.tokenizer.vocab[i] for i in one.token_ids)
        yield Answer(bert.name, tokens, masks, nsp, one.encoding.truncated, sop, replaced)
