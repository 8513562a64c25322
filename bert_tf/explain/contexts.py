"""Places in other texts whose vectors lie nearest to a token's: what else the model, or one head, reads alike; and
what words stand there.

As exBERT's search of a corpus (Hoover et al. 2020, "exBERT: A Visual Analysis Tool to Explore Learned Representations
in Transformer Models"). Dimension legend: T tokens, H hidden, D head size, N heads, L layers, W vectors.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from bert_tf.explain.errors import InputError, report
from bert_tf.explain.neuron import check_head
from bert_tf.explain.predictions import check_top_k
from bert_tf.explain.prepare import prepare
from bert_tf.explain.value_attention import attended_values
from bert_tf.explain.vectors import cosine_similarities
from bert_tf.explain.words import WordSpan, words_of
from bert_tf.text import pad_batch

#: Tokens that are compared at most: their states are then 60 MB with Base, 80 MB with Large; of one head 5 MB.
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
        return self.text[: self.word.start], self.word.text, self.text[self.word.end :]

    @property
    def text(self):
        """The text that the word stands in."""
        return self.row.text_a if self.word.source == "a" else self.row.text_b


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


def nearest_contexts(bert, vectors, layer, rows, top_k=10, centred=False, most=MOST, progress=None, head=None):
    """The places in some texts whose vectors after a layer, or in a head, point most nearly the same way.

    Held meanwhile: `most` vectors of H numbers, or of D with a head, and what one pass of 8 texts takes; of attention
    the maps of one layer for one text.

    Args:
        bert: a `Bert`. vectors: float [W, H], such as hidden states of a trace after the same layer; with a head
            [W, D], such as `attended_values` of the same head.
        layer: of the states, 0 the embeddings, 1 to L the layers; with a head its layer, from 0.
        rows: `Row`s; each is read as it stands, what it names to hide is not hidden. One in which nothing can be
            read is passed over.
        top_k: places for each vector.
        centred: whether the mean of all the vectors read is first taken from both sides: the states of a layer have
            a direction in common that hides their differences (Mu and Viswanath 2018).
        most: tokens that are read, at most; rows after them are left out.
        progress: callable(done, total) in rows; returning False cancels.
        head: from 0, compares what this head puts together at each token; None compares the states.
    Returns:
        `Contexts`. The tokens that the model adds ([CLS], [SEP]) are no places.
    Raises:
        InputError: no such layer or head, a vector of another size, a bad `top_k` or `most`, or nothing to read.
        Cancelled: by `progress`.
    """
    check_top_k(top_k)
    vectors, rows = np.asarray(vectors, np.float32), list(rows)
    width = _width(bert, layer, head)
    if vectors.ndim != 2 or vectors.shape[1] != width:
        what = "states" if head is None else "heads' vectors"
        raise InputError(f"The vectors have shape {list(vectors.shape)}; the {what} of this model are [W, {width}].")
    if most < 1:
        raise InputError(f"most must be at least 1, not {most}.")
    places, states, read = _read(bert, layer, head, rows, most, progress)
    if not places:
        raise InputError("There is nothing to read in these texts.")
    middle = states.mean(axis=0) if centred else 0.0
    cosines = cosine_similarities(vectors - middle, states - middle)
    nearest = tuple(_nearest(places, line, top_k) for line in cosines)
    return Contexts(nearest, read, len(places))


def _width(bert, layer, head):
    """Numbers of a vector that is compared; refuses a layer or head that is not there."""
    layers, width = bert.config.num_hidden_layers, bert.config.hidden_size
    if head is not None:
        check_head(bert, layer, head)
        return width // bert.config.num_attention_heads
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    return width


def _read(bert, layer, head, rows, most, progress):
    """(places as (row, word, token, position), their vectors float32 [T, H] or [T, D], how many rows were read)."""
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
                if head is not None:
                    vectors = attended_values(bert, vectors[: len(ready.encoding.tokens)], layer, head)
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


def matched_labels(tagger, contexts, progress=None):
    """What a fine-tuned tagger says of the words of some places, such as their parts of speech.

    Args:
        tagger: a `Bert` fine-tuned to label words. contexts: `Context`s; each text is read once.
        progress: callable(done, total) in texts; returning False cancels.
    Returns:
        tuple of a label for each place: of the tagger's word at the first character of the place's own, as the two
        models may cut a text into other words; None where it has no word there.
    Raises:
        InputError: the model labels no words.
        Cancelled: by `progress`.
    """
    if tagger.task is None or tagger.task.settings.task != "tag":
        raise InputError(f"{tagger.name} was not fine-tuned to label words.")
    texts = list(dict.fromkeys(one.text for one in contexts))
    read = {}
    for text in texts:
        (read[text],) = tagger.task.predict([{"text": text}])
        report(progress, len(read), len(texts))
    return tuple(_label_at(read[one.text], one.word.start) for one in contexts)


def _label_at(said, character):
    spans = zip(said["spans"], said["labels"], strict=True)
    return next((label for (start, end), label in spans if start <= character < end), None)


def count_labels(labels):
    """How often each label stands among those of `matched_labels`, the most frequent first: dict label -> count."""
    return dict(Counter(label for label in labels if label is not None).most_common())
