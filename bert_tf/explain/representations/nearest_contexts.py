"""Nearest contexts: the tokens in other texts whose vectors are nearest to a token's vector.

The vectors are hidden states, or the outputs of some heads. For heads the result also holds the token that they attend
to most from each place. It is the corpus search of exBERT (Hoover et al. 2020, "exBERT: A Visual Analysis Tool to
Explore Learned Representations in Transformer Models"). Dimension legend: T tokens, H hidden, D head size, N heads, L
layers, W vectors, K heads that are compared, X vectors that are searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, check_hidden_state, report
from bert_tf.explain.attention.context_labels import count_contexts, label_contexts
from bert_tf.explain.attention.value_attention import checked_heads, head_outputs, head_outputs_and_attention
from bert_tf.explain.representations.contexts import Context, MostAttendedToken, NearestContexts
from bert_tf.explain.representations.nearest_words import checked_positions, nearest_words
from bert_tf.explain.representations.vectors import cosine_similarities
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import check_top_k
from bert_tf.inference.trace import hidden_states_of
from bert_tf.inference.words import words_of
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:
    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.explain.representations.nearest_words import NearestWords
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: The most tokens that are compared. Their hidden states take 60 MB with Base and 80 MB with Large, each head 5 MB.
MAX_COMPARED_TOKENS = 20_000

# Texts in one forward pass: few, because other users wait for the model meanwhile.
_TEXTS = 8


def nearest_contexts(
    bert: Bert,
    vectors: np.ndarray,
    layer: int,
    rows: Iterable[TextRow],
    top_k: int = 10,
    centred: bool = False,
    most: int = MAX_COMPARED_TOKENS,
    progress: Callable[[int, int], Any] | None = None,
    head: int | Sequence[int] | None = None,
    special: bool = True,
) -> NearestContexts:
    """The tokens in some texts whose hidden states, or head outputs, have the greatest cosine with query vectors.

    Memory: `most` vectors of H numbers, or of D for each head, and the tensors of one pass of 8 texts; for attention
    the maps of one layer for one text.

    Args:
        bert: Bert. The model.
        vectors: np.ndarray. float [W, H], such as the hidden states of a trace after the same layer. For heads
            float [W, K D], such as the `head_outputs` of the same heads.
        layer: int. The layer of the hidden states: 0 the embeddings, 1 to L the layers. For heads their layer, from 0.
        rows: sequence of TextRow. The words that a row names to mask are not masked. A row without a readable text is
            skipped.
        top_k: int. The number of contexts for each vector.
        centred: bool. Whether to subtract the mean of all the vectors read from both sides. The hidden states of a
            layer share a direction that hides their differences (Mu and Viswanath 2018).
        most: int. The most tokens that are read; the rows after them are left out.
        progress: callable(done, total). Called with numbers of rows; it cancels by returning False.
        head: int or list of int. One head or K heads, from 0. Their outputs at each token are compared, and the result
            holds the token that they attend to most. None compares hidden states. The output of each head is scaled to
            length 1, as in Hoover et al., so the cosine of all outputs together is the mean of the heads' cosines.
        special: bool. Whether the most attended token may be one that the model adds; many heads give these tokens most
            of their attention. The compared vectors are the same.
    Returns:
        `NearestContexts`. The tokens that the model adds ([CLS], [SEP]) are never contexts.
    Raises:
        InputError: the layer or a head does not exist, a head is named twice, a vector of another size, a bad `top_k`
            or `most`, or nothing to read.
        Cancelled: by `progress`.
    """
    check_top_k(top_k)
    vectors, rows = np.asarray(vectors, np.float32), list(rows)
    heads = None if head is None else checked_heads(bert, layer, head)
    width = _width(bert, layer, heads)
    if vectors.ndim != 2 or vectors.shape[1] != width:
        kind = "hidden states" if heads is None else "head outputs"
        raise InputError(f"The vectors have shape {list(vectors.shape)}; the {kind} of this model are [W, {width}].")
    if most < 1:
        raise InputError(f"most must be at least 1, not {most}.")
    places, states, read = _read(bert, layer, heads, rows, most, progress, special)
    if not places:
        raise InputError("There is nothing to read in these texts.")
    mean = states.mean(axis=0) if centred else 0.0
    cosines = _cosines(vectors - mean, states - mean, len(heads or (None,)))
    nearest = tuple(_nearest(places, line, top_k) for line in cosines)
    return NearestContexts(nearest, read, len(places), layer, None if heads is None else tuple(heads), centred)


def _width(bert, layer, heads):
    """The length of the compared vectors; raises InputError if the layer does not exist."""
    layers, width = bert.config.num_hidden_layers, bert.config.hidden_size
    if heads is not None:
        return width // bert.config.num_attention_heads * len(heads)
    check_hidden_state(layer, layers)
    return width


def _cosines(vectors, others, parts):
    """float32 [W, X], the mean cosine over equally long parts of the vectors."""
    pairs = zip(np.split(vectors, parts, axis=1), np.split(others, parts, axis=1))
    return sum(cosine_similarities(part, other) for part, other in pairs) / parts


def _read(bert, layer, heads, rows, most, progress, special):
    """The tokens of the rows and their vectors.

    Returns:
        (places as (row, word, token, position, `MostAttendedToken` or None), their vectors float32 [T, H] or [T, K D],
        the number of rows that were read).
    """
    places: list[tuple] = []
    states, read = [], 0
    for start in range(0, len(rows), _TEXTS):
        prepared = (_prepared(bert, row) for row in rows[start : start + _TEXTS])
        block = [row_and_input for row_and_input in prepared if row_and_input is not None]
        if block:
            batch = pad_batch([ready for _, ready in block], pad_id=bert.tokenizer.pad_id)
            hidden_states = bert.runtime.run(batch, ("hidden_states",))["hidden_states"][layer]  # [B, T, H]
            for (row, ready), vectors in zip(block, hidden_states):
                tokens, spans = ready.encoding.tokens, words_of(ready.encoding, ready.text_a, ready.text_b)
                words = {position: word for word in spans for position in word.positions}
                positions = list(words)[: most - len(places)]
                most_attended: dict[int, Any] = dict.fromkeys(positions)
                if heads is not None:
                    vectors, maps = head_outputs_and_attention(bert, vectors[: len(tokens)], layer, heads)
                    keys = range(len(tokens)) if special else list(words)
                    most_attended = {
                        position: _most_attended(row, words, tokens, position, maps[position], keys)
                        for position in positions
                    }
                places += [
                    (row, words[position], tokens[position], position, most_attended[position])
                    for position in positions
                ]
                states.append(np.asarray(vectors)[positions])
                read += bool(positions)
        report(progress, min(start + _TEXTS, len(rows)), len(rows))
        if len(places) >= most:
            break
    return places, np.concatenate(states) if states else None, read


def _most_attended(row, words, tokens, position, weights, keys):
    """The `MostAttendedToken` of a position with attention weights [T], among the positions `keys`."""
    key = int(keys[weights[keys].argmax()])
    return MostAttendedToken(row, words.get(key), tokens[key], key, float(weights[key]), key - position)


def _prepared(bert, row):
    """(row, its prepared input); None for a row without a readable text."""
    try:
        return row, prepare_input(bert.tokenizer, bert.max_length, row.text_a, row.text_b)
    except ValueError:
        return None


def _nearest(places, cosines, top_k):
    """The `Context`s of the places with the greatest cosines."""
    best = np.argsort(-cosines, kind="stable")[:top_k]
    contexts = []
    for index in best:
        row, word, token, position, most_attended = places[index]
        contexts.append(Context(row, word, token, position, float(cosines[index]), most_attended))
    return tuple(contexts)


def nearest(
    bert: Bert,
    trace: Trace,
    rows: Sequence[TextRow] | None = None,
    positions: Iterable[int] | None = None,
    top_k: int = 10,
    centred: bool = True,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    special: bool = True,
    tagger: Bert | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> NearestWords | NearestContexts:
    """The nearest words of the vocabulary to tokens' vectors, or the nearest contexts in a file of texts.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with hidden states.
        rows: sequence of TextRow. None for the vocabulary. `layer`, `heads`, `special` and `tagger` need rows.
        positions: sequence of int. Positions of the tokens; None for all.
        top_k, centred, special: as in `nearest_contexts`.
        layer: int. The layer of the hidden states, 0 the embeddings; for heads their layer, from 0. None for the last.
        heads: sequence of int. The heads, from 0, whose outputs are compared; None for hidden states.
        tagger: Bert. A model that labels the words of the contexts; None for the labels of the rows.
        progress: callable(done, total). It cancels by returning False.
    Returns:
        `NearestWords`, or `NearestContexts` with labels.
    Raises:
        MaskPositionError: a position does not exist.
        InputError: the layer or a head does not exist, the options do not fit together, or the trace has no hidden
            states.
        Cancelled: by `progress`.
    """
    if rows is None:
        for name, value in (("layer", layer), ("heads", heads), ("tagger", tagger)):
            if value is not None:
                raise InputError(f"{name} needs a file: without one the result is the nearest words of every layer.")
        return nearest_words(bert, trace, positions, top_k, centred)
    if not special and heads is None:
        raise InputError("Special tokens can be left out only with heads: they are left out of what heads look at.")
    if tagger is not None and any(row.parsed is not None for row in rows):
        raise InputError("A tagger labels plain texts; a CoNLL-U file has its own parts of speech.")
    states = hidden_states_of(trace)
    positions, layers = checked_positions(trace, positions), len(states) - 1
    layer = layer if layer is not None else layers - (heads is not None)
    check_hidden_state(layer, layers)
    vectors = states[layer]
    if heads is not None:
        vectors = head_outputs(bert, vectors, layer, list(heads))
    contexts = nearest_contexts(
        bert, vectors[list(positions)], layer, rows, top_k, centred, progress=progress, head=heads, special=special
    )
    contexts = replace(contexts, tokens=tuple(trace.tokens), positions=positions)
    if tagger is not None or any(row.parsed is not None for row in rows):
        contexts = label_contexts(tagger, contexts, progress)
    return replace(contexts, counts=tuple(map(count_contexts, contexts.nearest)))


def _numbers(text):
    """A tuple of the numbers in "3" or "3,5"."""
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise InputError(f"takes one head or several, as in 3 or 3,5; not {text!r:.40}") from None


ANALYSIS = Analysis(
    name="nearest-words",
    function=nearest,
    summary="the words nearest to each token's vectors, layer by layer; or the nearest contexts in a file",
    source="Mu and Viswanath 2018, All-but-the-Top; Hoover et al. 2020, exBERT",
    inputs="pair with file",
    options=(
        Option("positions", "positions of the tokens (default: all)", int, several=True, metavar="P"),
        TOP_K,
        Option("centred", "do not subtract the mean of the vectors", bool, True, aliases=("not-centred",)),
        Option("layer", "with --input: after which layer, 0 the embeddings (default: the last)", int, metavar="L"),
        Option(
            "heads",
            "with --input: compare the outputs of this head of the layer, or of several; head and layer from 0",
            metavar="H,…",
            parse=_numbers,
            aliases=("head",),
        ),
        Option("special", "leave special tokens such as [SEP] out of the tokens that heads look at", bool, True),
        Option("tagger", "with --input: label the words with this fine-tuned model", metavar="M", model=True),
    ),
    aliases=("neighbours",),
)
