"""Places in other texts whose vectors lie nearest to a token's: what else the model, or some heads, read alike; and
where these heads look there.

As exBERT's search of a corpus (Hoover et al. 2020, "exBERT: A Visual Analysis Tool to Explore Learned Representations
in Transformer Models"). Dimension legend: T tokens, H hidden, D head size, N heads, L layers, W vectors.
"""

from dataclasses import dataclass, field, replace
from typing import Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, report
from bert_tf.explain.attention.context_labels import count_contexts, label_contexts
from bert_tf.explain.attention.value_attention import checked_heads, head_outputs, head_outputs_and_attention
from bert_tf.explain.representations.nearest_words import checked_positions, nearest_words
from bert_tf.explain.representations.vectors import cosine_similarities
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.predictions import check_top_k
from bert_tf.inference.words import WordSpan, words_of
from bert_tf.results import Result, frame
from bert_tf.tokenizers import pad_batch

#: Tokens that are compared at most: their states are then 60 MB with Base, 80 MB with Large; of each head 5 MB.
MAX_COMPARED_TOKENS = 20_000

# Texts in one forward pass: few, for others wait for the model meanwhile.
_TEXTS = 8


@dataclass(frozen=True)
class MostAttendedToken(Result):
    """The token that heads look at most from some place.

    Attributes:
        row: the `Row` it stands in. word: the `WordSpan` of the word it is (a piece of); None for a token that the
            model adds, such as [SEP].
        token: as the vocabulary has it. position: among the row's tokens, [CLS] is 0.
        share: of the attention from that place, 0 to 1; of several heads the mean.
        offset: how many tokens it stands after the place; below 0 before it.
        part_of_speech, relation: what a tagger or the file says of the word; None where neither does.
    """

    row: object = field(metadata={"export": False})
    word: Optional[WordSpan] = field(metadata={"export": False})
    token: str
    position: int
    share: float
    offset: int
    part_of_speech: Optional[str] = None
    relation: Optional[str] = None

    def to_dict(self):
        """The fields, and the word's letters."""
        return {"word": None if self.word is None else self.word.text, **super().to_dict()}

    @property
    def text(self):
        """The text that the word stands in; None where there is no word."""
        return None if self.word is None else _text_of(self)


@dataclass(frozen=True)
class Context(Result):
    """A token of a text, and how near its vector is.

    Attributes:
        row: the `Row` it stands in. word: the `WordSpan` of the word it is (a piece of).
        token: as the vocabulary has it. position: among the row's tokens, [CLS] is 0.
        similarity: cosine of its vector with the one asked about, -1 to 1; of several heads the mean of their cosines.
        most_attended: the `MostAttendedToken` of the heads that are compared; None where states are.
        part_of_speech, relation: what a tagger or the file says of the word; None where neither does.
    """

    row: object = field(metadata={"export": False})
    word: WordSpan = field(metadata={"export": False})
    token: str
    position: int
    similarity: float
    most_attended: Optional[MostAttendedToken] = None
    part_of_speech: Optional[str] = None
    relation: Optional[str] = None

    def to_dict(self):
        """The fields, the row's number, and the word between what stands before and behind it in its text."""
        before, word, after = self.parts
        where = {"row": self.row.number, "source": self.word.source, "before": before, "word": word, "after": after}
        return {**where, **super().to_dict()}

    @property
    def parts(self):
        """(what stands before the word, the word, what stands behind it) in its text."""
        return self.text[: self.word.start], self.word.text, self.text[self.word.end :]

    @property
    def text(self):
        """The text that the word stands in."""
        return _text_of(self)

    def around(self, most):
        """`parts` with « » about the word that the heads look at, where it stands in the same text.

        Args:
            most: characters on either side of the word; of what lies further away there is the marked word alone.
        """
        before, word, after = self.parts
        most_attended = None if self.most_attended is None else self.most_attended.word
        if most_attended is None or most_attended.source != self.word.source:
            return _last(before, most), word, _first(after, most)
        marked = f"«{most_attended.text}»"
        if most_attended.index == self.word.index:
            return _last(before, most), marked, _first(after, most)
        if most_attended.index > self.word.index:
            start, end = most_attended.start - self.word.end, most_attended.end - self.word.end
            near = end <= most
            between = after[:start] if near else _first(after[:start], most)
            return _last(before, most), word, between + marked + _first(after[end:], most - end if near else 0)
        near = len(before) - most_attended.start <= most
        between = before[most_attended.end :] if near else _last(before[most_attended.end :], most)
        left = _last(before[: most_attended.start], most - (len(before) - most_attended.start) if near else 0)
        return left + marked + between, word, _first(after, most)


def _text_of(place):
    return place.row.text_a if place.word.source == "a" else place.row.text_b


def _last(text, most):
    return text if len(text) <= most else f"…{text[len(text) - most :]}"


def _first(text, most):
    return text if len(text) <= most else f"{text[:most]}…"


@dataclass(frozen=True, eq=False)
class NearestContexts(
    Result,
    figures={
        "map": "bert_tf.plots.representations.nearest_words:context_map",
        "bars": "bert_tf.plots.representations.nearest_words:context_bars",
    },
):
    """What `nearest_contexts` found.

    Attributes:
        nearest: a tuple of `Context`s for each vector asked about, the nearest first.
        rows_read, tokens_compared: how many.
        layer: whose states were compared, 0 the embeddings; with heads their layer, from 0.
        heads: from 0, that were compared; None for the states.
        centred: whether the mean of all the vectors read was taken from both sides first.
        tokens: the input's tokens. positions: of the tokens whose vectors were asked about. Both are empty where
            vectors of no input were.
        counts: `ContextCounts` of each vector's contexts, where they are labelled or heads are compared.
    """

    nearest: tuple
    rows_read: int
    tokens_compared: int
    layer: int
    heads: Optional[tuple]
    centred: bool
    tokens: tuple = ()
    positions: tuple = ()
    counts: tuple = ()

    @property
    def places(self):
        """All contexts, then all tokens that heads look at from them, a tuple."""
        contexts = [one for near in self.nearest for one in near]
        return (*contexts, *(one.most_attended for one in contexts if one.most_attended is not None))

    def labelled(self, parts_of_speech=None, relations=None):
        """The same with labels of all `places`, in their order; None where there are none."""
        none = (None,) * len(self.places)
        labels = dict(zip(map(id, self.places), zip(parts_of_speech or none, relations or none)))

        def named(one):
            part_of_speech, relation = labels[id(one)]
            return replace(one, part_of_speech=part_of_speech, relation=relation)

        nearest = tuple(
            tuple(replace(named(one), most_attended=one.most_attended and named(one.most_attended)) for one in near)
            for near in self.nearest
        )
        return replace(self, nearest=nearest)

    def to_frame(self):
        """A row for each vector asked about and context; columns in which nothing is known are left out."""
        rows = []
        for index, near in enumerate(self.nearest):
            asked = {"query": index}
            if self.positions:
                asked = {"position": self.positions[index], "token": self.tokens[self.positions[index]]}
            for rank, one in enumerate(near, start=1):
                found = one.to_dict()
                there = found.pop("most_attended") or {}
                found = {f"context_{name}" if name in ("token", "position") else name: found[name] for name in found}
                rows.append({**asked, "rank": rank, **found, **{f"looks_at_{name}": there[name] for name in there}})
        return frame(rows).dropna(axis=1, how="all")


def nearest_contexts(
    bert,
    vectors,
    layer,
    rows,
    top_k=10,
    centred=False,
    most=MAX_COMPARED_TOKENS,
    progress=None,
    head=None,
    special=True,
):
    """The places in some texts whose vectors after a layer, or in some heads, point most nearly the same way.

    Held meanwhile: `most` vectors of H numbers, or of D for each head, and what one pass of 8 texts takes; of attention
    the maps of one layer for one text.

    Args:
        bert: a `Bert`. vectors: float [W, H], such as hidden states of a trace after the same layer; with heads
            [W, K D], such as `head_outputs` of the same heads.
        layer: of the states, 0 the embeddings, 1 to L the layers; with heads their layer, from 0.
        rows: `Row`s; each is read as it stands, what it names to hide is not hidden. One in which nothing can be
            read is passed over.
        top_k: places for each vector.
        centred: whether the mean of all the vectors read is first taken from both sides: the states of a layer have
            a direction in common that hides their differences (Mu and Viswanath 2018).
        most: tokens that are read, at most; rows after them are left out.
        progress: callable(done, total) in rows; returning False cancels.
        head: from 0, or a list of K, compares what these heads put together at each token, and says where they look
            there; None compares the states. Each head's part is first brought to length 1, as Hoover et al. do, so the
            cosine of them all is the mean of the heads' cosines.
        special: whether the tokens that the model adds count where it is asked at what the heads look; many heads give
            them most of their attention. The vectors are the same.
    Returns:
        `NearestContexts`. The tokens that the model adds ([CLS], [SEP]) are no places.
    Raises:
        InputError: no such layer or head, a head named twice, a vector of another size, a bad `top_k` or `most`, or
            nothing to read.
        Cancelled: by `progress`.
    """
    check_top_k(top_k)
    vectors, rows = np.asarray(vectors, np.float32), list(rows)
    heads = None if head is None else checked_heads(bert, layer, head)
    width = _width(bert, layer, heads)
    if vectors.ndim != 2 or vectors.shape[1] != width:
        what = "states" if heads is None else "heads' vectors"
        raise InputError(f"The vectors have shape {list(vectors.shape)}; the {what} of this model are [W, {width}].")
    if most < 1:
        raise InputError(f"most must be at least 1, not {most}.")
    places, states, read = _read(bert, layer, heads, rows, most, progress, special)
    if not places:
        raise InputError("There is nothing to read in these texts.")
    middle = states.mean(axis=0) if centred else 0.0
    cosines = _cosines(vectors - middle, states - middle, len(heads or (None,)))
    nearest = tuple(_nearest(places, line, top_k) for line in cosines)
    return NearestContexts(nearest, read, len(places), layer, None if heads is None else tuple(heads), centred)


def _width(bert, layer, heads):
    """Numbers of a vector that is compared; refuses a layer that is not there."""
    layers, width = bert.config.num_hidden_layers, bert.config.hidden_size
    if heads is not None:
        return width // bert.config.num_attention_heads * len(heads)
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    return width


def _cosines(vectors, others, parts):
    """float32 [W, X], the mean over equally long parts of the vectors of their cosines."""
    pairs = zip(np.split(vectors, parts, axis=1), np.split(others, parts, axis=1))
    return sum(cosine_similarities(part, other) for part, other in pairs) / parts


def _read(bert, layer, heads, rows, most, progress, special):
    """The tokens of the rows and their vectors.

    Returns:
        (places as (row, word, token, position, `MostAttendedToken` or None), their vectors float32 [T, H] or [T, K D],
        how many rows were read).
    """
    places, states, read = [], [], 0
    for start in range(0, len(rows), _TEXTS):
        block = [one for one in (_prepared(bert, row) for row in rows[start : start + _TEXTS]) if one is not None]
        if block:
            batch = pad_batch([ready for _, ready in block], pad_id=bert.tokenizer.pad_id)
            found = bert.runtime.run(batch, ("hidden_states",))["hidden_states"][layer]  # [B, T, H]
            for (row, ready), vectors in zip(block, found):
                tokens, spans = ready.encoding.tokens, words_of(ready.encoding, ready.text_a, ready.text_b)
                words = {at: word for word in spans for at in word.positions}
                own = list(words)[: most - len(places)]
                most_attended = dict.fromkeys(own)
                if heads is not None:
                    vectors, maps = head_outputs_and_attention(bert, vectors[: len(tokens)], layer, heads)
                    among = range(len(tokens)) if special else list(words)
                    most_attended = {at: _look(row, words, tokens, at, maps[at], among) for at in own}
                places += [(row, words[at], tokens[at], at, most_attended[at]) for at in own]
                states.append(np.asarray(vectors)[own])
                read += bool(own)
        report(progress, min(start + _TEXTS, len(rows)), len(rows))
        if len(places) >= most:
            break
    return places, np.concatenate(states) if states else None, read


def _look(row, words, tokens, at, weights, among):
    """Where, among some positions, the weights [T] of the token at one are greatest."""
    to = int(among[weights[among].argmax()])
    return MostAttendedToken(row, words.get(to), tokens[to], to, float(weights[to]), to - at)


def _prepared(bert, row):
    try:
        return row, prepare_input(bert.tokenizer, bert.max_length, row.text_a, row.text_b)
    except ValueError:
        return None


def _nearest(places, cosines, top_k):
    best = np.argsort(-cosines, kind="stable")[:top_k]
    found = ((*places[place], float(cosines[place])) for place in best)
    return tuple(
        Context(row, word, token, at, cosine, most_attended) for row, word, token, at, most_attended, cosine in found
    )


def nearest(
    bert,
    trace,
    rows=None,
    positions=None,
    top_k=10,
    centred=True,
    layer=None,
    heads=None,
    special=True,
    tagger=None,
    progress=None,
):
    """The words of the vocabulary nearest to tokens' vectors; or, with rows, the contexts in these texts.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace` with hidden states.
        rows: `TextRow`s, or None for the vocabulary. The rest goes with them, but for `top_k` and `centred`.
        positions: of the tokens; None for all.
        top_k, centred, special: as `nearest_contexts` takes them.
        layer: of the states, 0 the embeddings; with heads their layer, from 0; None for the last.
        heads: from 0, whose outputs are compared; None for the states.
        tagger: a `Bert` that labels the words found; None for the labels that the rows have.
        progress: callable(done, total); returning False cancels.
    Returns:
        `NearestWords`, or `NearestContexts`, labelled.
    Raises:
        MaskPositionError: a position that is not there. InputError: no such layer or head, options that do not go
            together. Cancelled: by `progress`.
    """
    if rows is None:
        for name, value in (("layer", layer), ("heads", heads), ("tagger", tagger)):
            if value is not None:
                raise InputError(f"{name} goes with a file: without one the nearest words of every layer are found.")
        return nearest_words(bert, trace, positions, top_k, centred)
    if not special and heads is None:
        raise InputError("Special tokens are left out with heads alone: it is about where these look.")
    if tagger is not None and any(row.parsed is not None for row in rows):
        raise InputError("A tagger labels plain texts; a CoNLL-U file has parts of speech of its own.")
    positions, layers = checked_positions(trace, positions), len(trace.hidden_states) - 1
    layer = layer if layer is not None else layers - (heads is not None)
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    vectors = trace.hidden_states[layer]
    if heads is not None:
        vectors = head_outputs(bert, vectors, layer, list(heads))
    found = nearest_contexts(
        bert, vectors[list(positions)], layer, rows, top_k, centred, progress=progress, head=heads, special=special
    )
    found = replace(found, tokens=tuple(trace.tokens), positions=positions)
    if tagger is not None or any(row.parsed is not None for row in rows):
        found = label_contexts(tagger, found, progress)
    return replace(found, counts=tuple(map(count_contexts, found.nearest)))


def _numbers(text):
    """Numbers with a comma between, "3" or "3,5"."""
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
        Option(
            "centred", "leave in the direction that all vectors have in common", bool, True, aliases=("not-centred",)
        ),
        Option("layer", "with --input: after which layer, 0 the embeddings (default: the last)", int, metavar="L"),
        Option(
            "heads",
            "with --input: compare what this head of the layer, or several, put together; all from 0 then",
            metavar="H,…",
            parse=_numbers,
            aliases=("head",),
        ),
        Option("special", "special tokens such as [SEP] do not count among what heads look at", bool, True),
        Option("tagger", "with --input: label the words with this fine-tuned model", metavar="M", model=True),
    ),
    aliases=("neighbours",),
)
