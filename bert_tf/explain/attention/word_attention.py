"""Attention between words: the maps of a trace with the pieces of each word merged.

Dimension legend: L layers, N heads, T tokens, W words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.explain.attention.head_summary import attention_maps

if TYPE_CHECKING:
    from bert_tf.inference.trace import Trace


def word_attention(trace: Trace, groups: Sequence[Iterable[int]]) -> np.ndarray:
    """Attention between words: the sum over the pieces of the attended word, the mean over the pieces of the attending
    word (Clark et al. 2019, section 4.1).

    Args:
        trace: Trace. A trace with attention maps.
        groups: W lists of ints. The token positions of each word.

    Returns:
        float32 [L, N, W, W]; a row adds up to 1 minus the attention to tokens that belong to no word.
    """
    maps = attention_maps(trace)
    member = np.zeros((len(groups), trace.length), np.float32)
    for word, positions in enumerate(groups):
        member[word, list(positions)] = 1
    averaged = member / np.maximum(member.sum(axis=1, keepdims=True), 1)
    words = np.empty((*maps.shape[:2], len(groups), len(groups)), np.float32)
    # A layer at a time: all maps of a long text together take gigabytes in float32.
    for merged, layer in zip(words, maps):
        merged[:] = averaged @ layer @ member.T
    return words


def word_trace(trace: Trace) -> Trace:
    """The trace with words in the place of tokens: its attention maps say how much each word attends to each word.

    The maps are those of `word_attention`. A token that the model adds, such as [CLS], counts as a word, so a row adds
    up to 1.

    Args:
        trace: Trace. A trace with attention maps, float [L, N, T, T].

    Returns:
        `Trace` with maps float32 [L, N, W, W]. A token is a word as it is written in the text, "[MASK]" if a piece of
        it is masked; its id is that of its first piece. It has no masks, logits or hidden states.

    Raises:
        InputError: the trace has no attention maps.

    Example:
        >>> bert = bert_tf.load()
        >>> words = word_trace(bert.trace("The bunny ate the carrot.", attentions=True))
        >>> words.tokens, words.attentions[10, 7].round(2)
    """
    starts = [at for at in range(trace.length) if at == 0 or not _is_same_word(trace, at - 1, at)]
    spans = list(zip(starts, [*starts[1:], trace.length]))
    attentions = word_attention(trace, [range(start, end) for start, end in spans])
    attentions.setflags(write=False)
    return dataclasses.replace(
        trace,
        tokens=tuple(_word(trace, start, end) for start, end in spans),
        original_tokens=tuple(_text(trace, start, end) for start, end in spans),
        token_ids=trace.token_ids[starts],
        original_ids=trace.original_ids[starts],
        offsets=tuple(_offsets(trace, start, end) for start, end in spans),
        word_ids=tuple(trace.word_ids[start] for start in starts),
        sources=tuple(trace.sources[start] for start in starts),
        segments=trace.segments[starts],
        masks=(),
        logits=None,
        attentions=attentions,
        hidden_states=None,
        replaced=None,
    )


def _is_same_word(trace, before, at):
    word = (trace.sources[at], trace.word_ids[at])
    return word == (trace.sources[before], trace.word_ids[before]) and trace.word_ids[at] is not None


def _word(trace, start, end):
    masked = [token for token, was in zip(trace.tokens[start:end], trace.original_tokens[start:end]) if token != was]
    return masked[0] if masked else _text(trace, start, end)


def _text(trace, start, end):
    offsets = _offsets(trace, start, end)
    if offsets is None:
        return trace.original_tokens[start]
    text = trace.text_b if trace.sources[start] == "b" else trace.text_a
    return text[slice(*offsets)]


def _offsets(trace, start, end):
    return trace.offsets[start] and (trace.offsets[start][0], trace.offsets[end - 1][1])
