"""Whether attention heads follow syntax: agreement with the dependencies of a CoNLL-U file.

Dimension legend: L layers, N heads, T tokens, W words. Pure NumPy. Source: Clark et al. 2019, "What Does BERT Look
At?", sections 4.1 and 4.2. CoNLL-U: universaldependencies.org/format.html.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attention.word_attention import word_attention
from bert_tf.results import Result, frame
from bert_tf.tokenizers.conllu import ConlluError, ConlluWord, read_rows

if TYPE_CHECKING:
    import pandas

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace

#: For each relation a pair of bool [L, N] a dependent: whether the dependent attends most to its head, and whether, of
#: all other words, its head is the one that attends most strongly to it.
_Hits = dict[str, list[tuple[np.ndarray, np.ndarray]]]


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence with its dependency tree.

    Attributes:
        words: tuple of W strings.
        heads: tuple of W ints. The number of the word that each word depends on, from 1; 0 for the root.
        relations: tuple of W strings. The dependency relations, such as "nsubj".
        tags: tuple of W strings. The parts of speech, such as "NOUN"; "_" where the file has none. Empty if there are
            no tags.

    Example:
        >>> sentence = ParsedSentence(("Cats", "sleep"), (2, 0), ("nsubj", "root"))
        >>> syntax_agreement(bert_tf.load(), [sentence]).to_frame()
    """

    words: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    tags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words, separated by spaces."""
        return " ".join(self.words)

    @property
    def has_dependencies(self) -> bool:
        """Whether any word depends on another: the sentences of a file without trees have none."""
        return any(self.heads)

    def word_at(self, character: int) -> int | None:
        """The number, from 0, of the word that contains a character of `text`; None for the space between words."""
        start = 0
        for number, word in enumerate(self.words):
            if start <= character < start + len(word):
                return number
            start += len(word) + 1
        return None


@dataclass(frozen=True, eq=False)
class RelationAgreement:
    """How often attention finds the syntactic head of a dependent; [CLS], [SEP] and the word itself are left out.

    Attributes:
        count: int. The number of dependents.
        dependent_to_head: float64 [L, N]. Share of the dependents whose most attended word is their syntactic head.
        head_to_dependent: float64 [L, N]. Share of the dependents to which, of all other words, their syntactic head
            attends most strongly.
        offset: int. The most frequent distance in words from a dependent to its head.
        offset_accuracy: float. Share of the dependents with that distance: the baseline. An attention head that does
            no better has learnt a distance, not a relation.
    """

    count: int
    dependent_to_head: np.ndarray
    head_to_dependent: np.ndarray
    offset: int
    offset_accuracy: float

    @property
    def best_direction(self) -> np.ndarray:
        """The larger of `dependent_to_head` and `head_to_dependent`, float64 [L, N]."""
        return np.maximum(self.dependent_to_head, self.head_to_dependent)

    @property
    def best_head(self) -> tuple[int, int]:
        """(layer, head) of the attention head that follows the relation most often, in either direction."""
        return divmod(int(self.best_direction.argmax()), self.best_direction.shape[1])


@dataclass(frozen=True, eq=False)
class SyntaxAgreement(Result, figures={"relations": "bert_tf.plots.attention.head_profile:relation_bars"}):
    """The agreement of attention heads with the dependencies of some sentences.

    Attributes:
        overall: RelationAgreement. Over all dependents.
        relations: dict from str to RelationAgreement. One for each relation, the most frequent relation first.
        num_sentences: int. The number of sentences, with those that were skipped.
        num_skipped: int. The number of sentences that were too long for the model, or that it cannot read.
    """

    overall: RelationAgreement
    relations: dict[str, RelationAgreement]
    num_sentences: int
    num_skipped: int

    def to_frame(self) -> pandas.DataFrame:
        """A row for each relation, with the attention head that follows it most often."""
        rows = []
        for name, agreement in self.relations.items():
            layer, head = best = agreement.best_head
            from_dependent = agreement.dependent_to_head[best] >= agreement.head_to_dependent[best]
            rows.append(
                {
                    "relation": name,
                    "count": agreement.count,
                    "layer": layer,
                    "head": head,
                    "direction": "dependent to head" if from_dependent else "head to dependent",
                    "accuracy": float(agreement.best_direction[best]),
                    "offset": agreement.offset,
                    "offset_accuracy": float(agreement.offset_accuracy),
                }
            )
        return frame({name: [row[name] for row in rows] for name in rows[0]})

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The agreement of every attention head over all relations and over each relation: float64 [L, N] by name."""
        agreements = {"all": self.overall, **self.relations}
        return {
            f"{name}_{direction}".replace(":", "_"): getattr(agreement, direction)
            for name, agreement in agreements.items()
            for direction in ("dependent_to_head", "head_to_dependent")
        }


def read_conllu(lines: Iterable[str]) -> tuple[ParsedSentence, ...]:
    """Read the sentences of a CoNLL-U file. Relations keep their subtypes ("nsubj:pass"); the parts of a multiword
    token ("1-2") stay separate words.

    Args:
        lines: iterable of strings, such as an open file.
    Returns:
        tuple of `ParsedSentence`.
    Raises:
        ConlluError: a line has not ten fields, or a head is not a word of its sentence.
    """
    return tuple(_sentence(rows) for rows in read_rows(lines))


def syntax_agreement(
    bert: Bert, sentences: Iterable[ParsedSentence], progress: Callable[[int, int], Any] | None = None
) -> SyntaxAgreement:
    """How often each attention head finds the syntactic heads of dependents.

    Args:
        bert: Bert.
        sentences: iterable of ParsedSentence.
        progress: callable(done, total) or None. Counts sentences; returning False cancels.
    Returns:
        `SyntaxAgreement`.
    Raises:
        InputError: no sentence that fits the model has a dependency.
        Cancelled: `progress` returned False.
    """
    sentences = tuple(sentences)
    total = SyntaxTotal()
    for done, sentence in enumerate(sentences, 1):
        try:
            trace = bert.trace(sentence.text, hidden_states=False)
        except ValueError:
            trace = None
        total.add(sentence, trace)
        report(progress, done, len(sentences))
    agreement = total.agreement()
    if agreement is None:
        raise InputError("No sentence that fits this model has a dependency.")
    return agreement


class SyntaxTotal:
    """Counts, one sentence after another, how often attention heads find the syntactic heads of dependents."""

    def __init__(self) -> None:
        self._hits: _Hits = defaultdict(list)
        self._distances: dict[str, Counter[int]] = defaultdict(Counter)
        self._sentences = self._skipped = 0

    def add(self, sentence: ParsedSentence, trace: Trace | None) -> None:
        """Count a sentence.

        Args:
            sentence: ParsedSentence.
            trace: Trace or None. The trace with attention maps of a text A, the words of the sentence separated by
                spaces; None if the model cannot read it.
        """
        self._sentences += 1
        if trace is None or any(trace.truncated):
            self._skipped += 1
        else:
            _count(trace, sentence, self._hits, self._distances)

    def agreement(self) -> SyntaxAgreement | None:
        """The agreement over all sentences so far; None if no sentence that fits the model has a dependency."""
        hits, distances = self._hits, self._distances
        if not hits:
            return None
        by_size = sorted(hits, key=lambda name: (-len(hits[name]), name))
        relations = {name: _agreement(hits[name], distances[name]) for name in by_size}
        all_hits = [hit for name in by_size for hit in hits[name]]
        overall = _agreement(all_hits, sum(distances.values(), Counter()))
        return SyntaxAgreement(overall, relations, self._sentences, self._skipped)


def _sentence(rows: Sequence[ConlluWord]) -> ParsedSentence:
    words, heads, relations, tags = [], [], [], []
    for number, fields in rows:
        head = "0" if fields[6] == "_" else fields[6]  # a file with tags and no trees has "_"
        if not (head.isdecimal() and int(head) <= len(rows)):
            raise ConlluError(f"Line {number}: the head {head!r:.20} is not a word of the sentence.")
        words.append(fields[1])
        heads.append(int(head))
        relations.append(fields[7])
        tags.append(fields[3])
    return ParsedSentence(tuple(words), tuple(heads), tuple(relations), tuple(tags))


def _positions(trace: Trace, words: Iterable[str]) -> list[list[int]]:
    """The token positions of each word of a text A that consists of these words, separated by spaces."""
    groups, start = [], 0
    for word in words:
        end = start + len(word)
        groups.append(
            [
                position
                for position, (source, span) in enumerate(zip(trace.sources, trace.offsets))
                if source == "a" and start <= span[0] and span[1] <= end
            ]
        )
        start = end + 1
    return groups


def _count(trace: Trace, sentence: ParsedSentence, hits: _Hits, distances: dict[str, Counter[int]]) -> None:
    groups = _positions(trace, sentence.words)
    attention = word_attention(trace, groups)
    words = np.arange(len(groups))
    attention[:, :, words, words] = -1
    attention[..., [word for word in words if not groups[word]]] = -1
    most_attended, most_attending = (_most(attention, axis) for axis in (-1, -2))
    for word, (head, relation) in enumerate(zip(sentence.heads, sentence.relations)):
        if head and groups[word] and groups[head - 1]:
            hits[relation].append((most_attended[..., word] == head - 1, most_attending[..., word] == head - 1))
            distances[relation][head - 1 - word] += 1


def _most(attention: np.ndarray, axis: int) -> np.ndarray:
    """The word with the highest weight along an axis, int64 [L, N, W]; -1 where there is none, as for the first word
    of a model that reads from left to right."""
    return np.where(attention.max(axis=axis) > 0, attention.argmax(axis=axis), -1)


def _agreement(hits: list[tuple[np.ndarray, np.ndarray]], distances: Counter[int]) -> RelationAgreement:
    dependent_to_head, head_to_dependent = (np.stack(side).mean(axis=0, dtype=np.float64) for side in zip(*hits))
    offset, count = max(distances.items(), key=lambda item: (item[1], -abs(item[0]), item[0]))
    return RelationAgreement(len(hits), dependent_to_head, head_to_dependent, offset, count / len(hits))
