"""Places in other texts whose vectors lie nearest to a token's: what else the model reads alike.

As exBERT's search of a corpus (Hoover et al. 2020, "exBERT: A Visual Analysis Tool to Explore Learned Representations
in Transformer Models"). Dimension legend: T tokens, H hidden, L layers, W vectors.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.explain.errors import InputError, report
from bert_tf.explain.predictions import check_top_k
from bert_tf.explain.prepare import prepare
from bert_tf.explain.vectors import cosine_similarities
from bert_tf.explain.words import WordSpan, words_of
from bert_tf.text import pad_batch

#: Tokens that are compared at most: their vectors are then 60 MB with Base, 80 MB with Large.
MOST = 20_000

# Texts in one forward pass: few, for others wait for the model meanwhile.
_TEXTS = 8


@dataclass(frozen=True)
class Context:
    """A token of a text, and how near its vector is.

    Attributes:
        row: the `Row` it stands in. word: the `WordSpan` of the word it is (a piece of).
        token: as the vocabulary has it. position: among the row's tokens, [CLS] is 0.
        similarity: cosine of its vector with the one asked about, -1 to 1.
    """

    row: object
    word: WordSpan
    token: str
    position: int
    similarity: float

    @property
    def parts(self):
        """(what stands before the word, the word, what stands behind it) in its text."""
        text = self.row.text_a if self.word.source == "a" else self.row.text_b
        return text[: self.word.start], self.word.text, text[self.word.end :]


@dataclass(frozen=True)
class Contexts:
    """What `nearest_contexts` found.

    Attributes:
        nearest: a tuple of `Context`s for each vector asked about, the nearest first.
        rows, tokens: how many were read and compared.
    """

    nearest: tuple
    rows: int
    tokens: int


def nearest_contexts(bert, vectors, layer, rows, top_k=10, centred=False, most=MOST, progress=None):
    """The places in some texts whose vectors after a layer point most nearly the same way.

    Args:
        bert: a `Bert`. vectors: float [W, H], such as hidden states of a trace after the same layer.
        layer: of the states, 0 the embeddings, 1 to L the layers.
        rows: `Row`s; each is read as it stands, what it names to hide is not hidden. One in which nothing can be
            read is passed over.
        top_k: places for each vector.
        centred: whether the mean of all the vectors read is first taken from both sides: the states of a layer have
            a direction in common that hides their differences (Mu and Viswanath 2018).
        most: tokens that are read, at most; rows after them are left out.
        progress: callable(done, total) in rows; returning False cancels.
    Returns:
        `Contexts`. The tokens that the model adds ([CLS], [SEP]) are no places.
    Raises:
        InputError: no such layer, a vector of another size, a bad `top_k` or `most`, or nothing to read.
        Cancelled: by `progress`.
    """
    check_top_k(top_k)
    vectors, rows = np.asarray(vectors, np.float32), list(rows)
    layers, width = bert.config.num_hidden_layers, bert.config.hidden_size
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    if vectors.ndim != 2 or vectors.shape[1] != width:
        raise InputError(f"The vectors have shape {list(vectors.shape)}; the states of this model are [W, {width}].")
    if most < 1:
        raise InputError(f"most must be at least 1, not {most}.")
    places, states, read = _read(bert, layer, rows, most, progress)
    if not places:
        raise InputError("There is nothing to read in these texts.")
    middle = states.mean(axis=0) if centred else 0.0
    cosines = cosine_similarities(vectors - middle, states - middle)
    nearest = tuple(_nearest(places, line, top_k) for line in cosines)
    return Contexts(nearest, read, len(places))


def _read(bert, layer, rows, most, progress):
    """(places as (row, word, token, position), their states float32 [T, H], how many rows were read)."""
    places, states, read = [], [], 0
    for start in range(0, len(rows), _TEXTS):
        block = [one for one in (_prepared(bert, row) for row in rows[start : start + _TEXTS]) if one is not None]
        if block:
            batch = pad_batch([ready for _, ready in block], pad_id=bert.tokenizer.pad_id)
            found = bert.runtime.run(batch, ("hidden_states",))["hidden_states"][layer]  # [B, T, H]
            for (row, ready), vectors in zip(block, found):
                words = words_of(ready.encoding, ready.text_a, ready.text_b)
                own = [(row, word, at) for word in words for at in word.positions][: most - len(places)]
                places += [(row, word, ready.encoding.tokens[at], at) for row, word, at in own]
                states.append(np.asarray(vectors)[[at for _, _, at in own]])
                read += bool(own)
        report(progress, min(start + _TEXTS, len(rows)), len(rows))
        if len(places) >= most:
            break
    return places, np.concatenate(states) if states else None, read


def _prepared(bert, row):
    try:
        return row, prepare(bert.tokenizer, bert.max_length, row.text_a, row.text_b)
    except ValueError:
        return None


def _nearest(places, cosines, top_k):
    best = np.argsort(-cosines, kind="stable")[:top_k]
    return tuple(Context(*places[place], float(cosines[place])) for place in best)
