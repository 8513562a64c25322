"""Sentence vectors from any layer, for any number of texts in constant memory.

B batch, T tokens, H hidden size, L layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, check_text, checked_pair, refuse_one_alone, require_head
from bert_tf.finetuning.tasks.head_formulas import normalized
from bert_tf.inference.model_inputs import check_length, without_tokens
from bert_tf.runtime.read_ahead import check_batch_size, check_errors, read_ahead_windows, read_row
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.inference.bert import Bert

POOLINGS = ("cls", "first", "mean", "max", "attention")


def sentence_vectors(
    bert: Bert,
    texts: Iterable[str | tuple[str, str | None]],
    pooling: str | None = None,
    layer: int = -1,
    batch_size: int = 32,
    max_length: int | None = None,
    normalize: bool | None = None,
    errors: str = "raise",
) -> Iterator[Any]:
    """Compute one vector for each text.

    Args:
        bert: `Bert`. The model.
        texts: iterable of str or (str, str). Texts or pairs (text_a, text_b). A text can be an exception, which is
            treated as the error of this text.
        pooling: str. "mean" or "max" over all tokens with [CLS] and [SEP] but without padding, "first" (the hidden
            state of [CLS]), "cls" (the pooled output, of the last layer only), or "attention" (the weighted mean of a
            model that was fine-tuned with it); None for that of a model of sentence similarity, else "mean".
        layer: int. The index of the hidden states: 0 (the embeddings) to L, or from the end: -1 is the last layer.
        batch_size: int. The number of texts in one forward pass.
        max_length: int or None. The number of tokens to which a text is cut, at least 3; None for the model's limit.
        normalize: bool or None. Whether vectors are scaled to length 1; None for what a model of sentence similarity
            does, if it computes its own pooling of its last layer, else False.
        errors: str. "raise" stops at a text without a token or of another type than str; "return" yields its exception
            instead of a vector.

    Yields:
        float32 [H] or an exception, in the order of the texts.

    Raises:
        InputError: `texts` is one text alone, the pooling is unknown, the model does not have the layer, `batch_size`
            is no positive whole number, a tuple holds more than two texts, or `max_length` is no whole number, leaves
            no token of a text, or is more than the model reads.
        EmptyText: a text is blank or has no token that can be read.
        TextError: a text holds half a surrogate pair.
        MissingHead: `pooling` is "cls" and the model has no pooler.
    """
    refuse_one_alone(texts, "texts")
    most = bert.config.max_tokens
    if max_length is not None:
        check_length(bert.tokenizer, max_length, 1)
    if max_length is not None and max_length > most:
        raise InputError(f"The length is {max_length:,}; {bert.name} reads at most {most:,} tokens.")
    own = similarity_settings(bert)
    pooling = pooling_of(bert, pooling)
    layer = _checked(bert, pooling, layer, batch_size)
    check_errors(errors)
    if normalize is None:
        is_own = own is not None and pooling == own.pooling and layer == bert.config.num_hidden_layers
        normalize = own is not None and is_own and own.extra["normalize"]
    length = read_length(bert) if max_length is None else max_length
    return _stream(bert, texts, pooling, layer, batch_size, length, normalize, errors)


def read_length(bert: Bert) -> int:
    """The number of tokens to which `sentence_vectors` cuts a text unless another is given."""
    own, most = similarity_settings(bert), bert.config.max_tokens
    return min(own.max_length, most) if own else most


def count_cut(bert: Bert, texts: Iterable[str | tuple[str, str | None]]) -> int:
    """The number of texts that are longer than `read_length`: their ends are not in their vectors."""
    return sum(bool(packed.truncated) for packed in _packed(bert, texts, read_length(bert)))


def text_errors(bert: Bert, texts: Iterable[Any]) -> Iterator[Exception | None]:
    """Yield what `sentence_vectors` would raise for each text, or None. The texts are only tokenized."""
    for window in read_ahead_windows(texts, 32):
        for packed in _packed(bert, window, read_length(bert), "return"):
            yield packed if isinstance(packed, Exception) else None


def similarity_settings(bert: Bert) -> TaskSettings | None:
    """The settings of a model of sentence similarity; None for another model."""
    return bert.task.settings if bert.task is not None and bert.task.settings.task == "similarity" else None


def pooling_of(bert: Bert, pooling: str | None = None) -> str:
    """The pooling that is used: the given one, else that of a model of sentence similarity, else "mean"."""
    if pooling is not None:
        return pooling
    own = similarity_settings(bert)
    return own.pooling if own else "mean"


def _pair(text):
    """(text_a, text_b or None), both checked."""
    texts = (text,) if isinstance(text, str) or not isinstance(text, Iterable) else tuple(text)
    if len(texts) > 2:
        raise InputError(f"Give a text or a pair (text_a, text_b), not {len(texts)} texts ({texts!r:.60}).")
    pair = checked_pair(*(*texts, None, None)[:2])
    for name, part in zip(("text_a", "text_b"), pair):
        if part is not None:
            check_text(part, name)
    return pair


def _checked(bert, pooling, layer, batch_size):
    if pooling not in POOLINGS:
        raise InputError(f"There is no pooling {pooling!r}; choose from {', '.join(POOLINGS)}.")
    count = bert.config.num_hidden_layers
    if isinstance(layer, bool) or not isinstance(layer, Integral) or not -count - 1 <= layer <= count:
        raise InputError(
            f"There is no layer {layer!r}; the model has 0 (the embeddings) to {count}, or -1 to "
            f"{-count - 1} from the end."
        )
    check_batch_size(batch_size)
    layer = layer + count + 1 if layer < 0 else layer
    if pooling == "attention" and (bert.task is None or bert.task.settings.pooling != "attention"):
        raise InputError(
            f"{bert.name} has no weights for pooling attention; fine-tune a model with --pooling "
            "attention, or choose mean."
        )
    if pooling == "cls":
        require_head(bert.heads, "pooler", bert.name)
        if layer != count:
            raise InputError("The pooler reads only the last layer; choose pooling first for [CLS] of another layer.")
    return layer


def _packed(bert, texts, length, errors="raise"):
    """A `PackedPair` of at most ``length`` tokens for each text, or its exception."""
    own, tokenizer = similarity_settings(bert), bert.tokenizer
    pairs = [read_row(text, _pair, errors) for text in texts]
    if own is not None and own.extra["lower_case"]:
        pairs = [
            pair if isinstance(pair, Exception) else (pair[0].lower(), pair[1] and pair[1].lower()) for pair in pairs
        ]
    good = [pair for pair in pairs if not isinstance(pair, Exception)]
    ids = iter(tokenizer.batch_ids(text for pair in good for text in pair if text is not None))

    def pack(pair):
        if pair[1] is not None:
            check_length(tokenizer, length, 2)
        tokens = [None if text is None else next(ids) for text in pair]
        for source, text, own_ids in zip("ab", pair, tokens):
            if own_ids is not None and not len(own_ids):
                raise without_tokens(source, text)
        return tokenizer.pack_pair(*tokens, length)

    return [read_row(pair, pack, errors) for pair in pairs]


def _stream(bert, texts, pooling, layer, batch_size, length, normalize, errors):
    for window in read_ahead_windows(texts, batch_size):
        packed = _packed(bert, window, length, errors)
        vectors: list[Any] = list(packed)
        good = [index for index, one in enumerate(packed) if not isinstance(one, Exception)]
        order = sorted(good, key=lambda index: packed[index].length)
        for first in range(0, len(order), batch_size):
            indices = order[first : first + batch_size]
            batch = pad_batch([packed[index] for index in indices], pad_id=bert.tokenizer.pad_id)
            for index, vector in zip(indices, _pooled(bert, batch, pooling, layer)):
                vectors[index] = normalized(vector) if normalize else vector
        yield from vectors


def _pooled(bert, batch, pooling, layer):
    """The vectors of one batch, float32 [B, H]."""
    if pooling == "cls":
        return np.array(bert.runtime.run(batch, ("pooled_output",))["pooled_output"])
    if layer == bert.config.num_hidden_layers:
        states = bert.runtime.run(batch, ("sequence_output",))["sequence_output"]
    else:
        states = bert.runtime.run(batch, ("hidden_states",))["hidden_states"][layer]
    if pooling == "first":
        return states[:, 0].copy()
    if pooling == "attention":
        return bert.task.sentence_vectors(states, batch["padding_mask"])
    real = batch["padding_mask"][:, :, None].astype(np.float32)
    if pooling == "max":
        return np.where(real > 0, states, -np.inf).max(axis=1)
    return (states * real).sum(axis=1) / real.sum(axis=1)
