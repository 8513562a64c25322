"""The contexts of a file nearest to some vectors: the records of the result.

Dimension legend: L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bert_tf.inference.words import WordSpan
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.explain.datasets.text_rows import TextRow


@dataclass(frozen=True)
class MostAttendedToken(Result):
    """The token that heads attend to most from a place.

    Attributes:
        row: TextRow. The row of the token.
        word: WordSpan. The word of the token; None for a token that the model adds, such as [SEP].
        token: str. The token in the vocabulary.
        position: int. The position among the row's tokens; [CLS] is 0.
        share: float. Its share of the attention from the place, 0 to 1; for several heads the mean.
        offset: int. Its distance to the place in tokens; negative before the place.
        part_of_speech, relation: str. The labels of the word by a tagger or by the file; None without one.
    """

    row: TextRow = field(metadata={"export": False})
    word: WordSpan | None = field(metadata={"export": False})
    token: str
    position: int
    share: float
    offset: int
    part_of_speech: str | None = None
    relation: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields, and the text of the word."""
        return {"word": None if self.word is None else self.word.text, **super().to_dict()}

    @property
    def text(self) -> str | None:
        """The text that contains the word; None without a word."""
        return None if self.word is None else _text_of(self)


@dataclass(frozen=True)
class Context(Result):
    """A token of a text and the similarity of its vector.

    Attributes:
        row: TextRow. The row of the token.
        word: WordSpan. The word of the token.
        token: str. The token in the vocabulary.
        position: int. The position among the row's tokens; [CLS] is 0.
        similarity: float. The cosine of its vector and the query vector, -1 to 1; for several heads the mean of their
            cosines.
        most_attended: MostAttendedToken. The token that the compared heads attend to most; None for hidden states.
        part_of_speech, relation: str. The labels of the word by a tagger or by the file; None without one.
    """

    row: TextRow = field(metadata={"export": False})
    word: WordSpan = field(metadata={"export": False})
    token: str
    position: int
    similarity: float
    most_attended: MostAttendedToken | None = None
    part_of_speech: str | None = None
    relation: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields, the row's number, and the word with the text before and after it."""
        before, word, after = self.parts
        where = {"row": self.row.number, "source": self.word.source, "before": before, "word": word, "after": after}
        return {**where, **super().to_dict()}

    @property
    def parts(self) -> tuple[str, str, str]:
        """(the text before the word, the word, the text after the word)."""
        return self.text[: self.word.start], self.word.text, self.text[self.word.end :]

    @property
    def text(self) -> str:
        """The text that contains the word."""
        return _text_of(self)

    def around(self, most: int) -> tuple[str, str, str]:
        """`parts` with « » around the most attended word, if it is in the same text.

        Args:
            most: int. The most characters on either side of the word. If the most attended word is farther away, it
                stands there without the text around it.
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


def _text_of(place: Any) -> str:
    return place.row.text_a if place.word.source == "a" else place.row.text_b


def _last(text: str, most: int) -> str:
    return text if len(text) <= most else f"…{text[len(text) - most :]}"


def _first(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


@dataclass(frozen=True, eq=False)
class NearestContexts(
    Result,
    figures={
        "map": "bert_tf.plots.representations.nearest_words:context_map",
        "bars": "bert_tf.plots.representations.nearest_words:context_bars",
    },
):
    """The result of `nearest_contexts`.

    Attributes:
        nearest: tuple. For each query vector a tuple of `Context`s, the nearest first.
        rows_read, tokens_compared: int. The number of rows and tokens.
        layer: int. The layer of the hidden states, 0 the embeddings; for heads their layer, from 0.
        heads: tuple of int. The compared heads, from 0; None for hidden states.
        centred: bool. Whether the mean of all the vectors read was subtracted from both sides first.
        tokens: tuple of str. The tokens of the input; empty if the query vectors are of no input.
        positions: tuple of int. The positions of the query tokens; empty if the query vectors are of no input.
        counts: tuple of ContextCounts. One for each query vector, if the contexts are labelled or heads are compared.
    """

    nearest: tuple
    rows_read: int
    tokens_compared: int
    layer: int
    heads: tuple | None
    centred: bool
    tokens: tuple = ()
    positions: tuple = ()
    counts: tuple = ()

    @property
    def places(self) -> tuple[Any, ...]:
        """All `Context`s, then all their `MostAttendedToken`s."""
        every = [context for contexts in self.nearest for context in contexts]
        return (*every, *(context.most_attended for context in every if context.most_attended is not None))

    def labelled(
        self, parts_of_speech: Sequence[str | None] | None = None, relations: Sequence[str | None] | None = None
    ) -> NearestContexts:
        """The same result with labels.

        Args:
            parts_of_speech, relations: sequence of str. A label for each of `places`, in their order; None for no
                labels.
        """
        none = (None,) * len(self.places)
        labels = dict(zip(map(id, self.places), zip(parts_of_speech or none, relations or none)))

        def with_labels(place):
            part_of_speech, relation = labels[id(place)]
            return replace(place, part_of_speech=part_of_speech, relation=relation)

        nearest = tuple(
            tuple(
                replace(
                    with_labels(context), most_attended=context.most_attended and with_labels(context.most_attended)
                )
                for context in contexts
            )
            for contexts in self.nearest
        )
        return replace(self, nearest=nearest)

    def to_frame(self) -> pd.DataFrame:
        """A row for each query vector and context, without the columns that have no values."""
        rows = []
        for index, contexts in enumerate(self.nearest):
            query = {"query": index}
            if self.positions:
                query = {"position": self.positions[index], "token": self.tokens[self.positions[index]]}
            for rank, context in enumerate(contexts, start=1):
                values = context.to_dict()
                attended = {f"looks_at_{name}": value for name, value in (values.pop("most_attended") or {}).items()}
                values = {f"context_{name}" if name in ("token", "position") else name: values[name] for name in values}
                rows.append({**query, "rank": rank, **values, **attended})
        return frame(rows).dropna(axis=1, how="all")
