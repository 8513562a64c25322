"""Whether attention heads follow syntax: agreement with the dependencies of a CoNLL-U file.

Dimension legend: L layers, N heads, W words. Pure NumPy. Source: Clark et al. 2019, "What Does BERT Look
At?", sections 4.1 and 4.2. CoNLL-U: universaldependencies.org/format.html.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from bert_tf.errors import InputError, report
from bert_tf.explain.attention.head_summary import attention_maps
from bert_tf.results import Result, frame
from bert_tf.tokenizers.conllu import ConlluError, read_rows


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence with its dependency tree.

    Attributes:
        words: W strings. heads: W numbers of the words they depend on, from 1; 0 for the root.
        relations: W names, such as "nsubj". tags: W parts of speech, such as "NOUN"; "_" where the file has none;
            empty where none were given.
    """

    words: tuple
    heads: tuple
    relations: tuple
    tags: tuple = ()

    @property
    def text(self):
        """The words with a space between."""
        return " ".join(self.words)

    def word_at(self, character):
        """The number, from 0, of the word that holds a character of `text`; None between two words."""
        start = 0
        for number, word in enumerate(self.words):
            if start <= character < start + len(word):
                return number
            start += len(word) + 1
        return None


@dataclass(frozen=True, eq=False)
class RelationAgreement:
    """How often attention finds the head of a dependent; [CLS], [SEP] and the word itself do not compete.

    Attributes:
        count: dependents counted.
        dependent_to_head: float64 [L, N], share whose most attended word is their head.
        head_to_dependent: float64 [L, N], share to whom, of all words, their head attends most.
        offset: the distance in words from dependent to head that is right most often, and offset_accuracy: how
            often that is. A head of the model that does no better has learnt a distance, not a relation.
    """

    count: int
    dependent_to_head: np.ndarray
    head_to_dependent: np.ndarray
    offset: int
    offset_accuracy: float

    @property
    def best_direction(self):
        """float64 [L, N], how often each head finds the head of a dependent, or its dependents: the better of the
        two."""
        return np.maximum(self.dependent_to_head, self.head_to_dependent)

    @property
    def best_head(self):
        """(layer, head) of the head that follows the relation most often, in either direction."""
        return divmod(int(self.best_direction.argmax()), self.best_direction.shape[1])


@dataclass(frozen=True, eq=False)
class SyntaxAgreement(Result, figures={"relations": "bert_tf.plots.attention.head_profile:relation_bars"}):
    """Agreement over some sentences.

    Attributes:
        overall: `RelationAgreement` of all dependents. relations: the same by relation, a dict, the most
            frequent first.
        num_sentences: how many were read; num_skipped: how many were too long for the model.
    """

    overall: RelationAgreement
    relations: dict
    num_sentences: int
    num_skipped: int

    def to_frame(self):
        """A row for each relation, with the head that follows it most often."""
        rows = []
        for name, one in self.relations.items():
            layer, head = best = one.best_head
            from_dependent = one.dependent_to_head[best] >= one.head_to_dependent[best]
            rows.append(
                {
                    "relation": name,
                    "count": one.count,
                    "layer": layer,
                    "head": head,
                    "direction": "dependent to head" if from_dependent else "head to dependent",
                    "accuracy": float(one.best_direction[best]),
                    "offset": one.offset,
                    "offset_accuracy": float(one.offset_accuracy),
                }
            )
        return frame({name: [row[name] for row in rows] for name in rows[0]})

    def to_arrays(self):
        """The agreement of every head with all relations and each: dict of float64 [L, N]."""
        named = {"all": self.overall, **self.relations}
        return {
            f"{name}_{direction}".replace(":", "_"): getattr(one, direction)
            for name, one in named.items()
            for direction in ("dependent_to_head", "head_to_dependent")
        }


def read_conllu(lines):
    """Sentences of a CoNLL-U file; subtypes ("nsubj:pass") are kept, words split from one ("1-2") are not
    joined.

    Args:
        lines: strings, such as an open file.
    Returns:
        tuple of `ParsedSentence`.
    Raises:
        ConlluError: a line without ten fields, or a head that is no word of its sentence.
    """
    return tuple(_sentence(rows) for rows in read_rows(lines))


def word_attention(trace, groups):
    """Attention between words: to a word the sum over its pieces, from a word the mean (Clark et al., 4.1).

    Args:
        trace: a `Trace` with attention maps. groups: W lists of token positions.
    Returns:
        float32 [L, N, W, W]; rows add up to less than 1 by what other tokens get.
    """
    maps = attention_maps(trace)
    member = np.zeros((len(groups), trace.length), np.float32)
    for word, positions in enumerate(groups):
        member[word, list(positions)] = 1
    looking = member / np.maximum(member.sum(axis=1, keepdims=True), 1)
    return looking @ maps @ member.T


def syntax_agreement(bert, sentences, progress=None):
    """How well each attention head finds the heads of dependents.

    Args:
        bert: a `Bert`. sentences: `ParsedSentence`s.
        progress: callable(done, total) in sentences; returning False cancels.
    Returns:
        `SyntaxAgreement`.
    Raises:
        InputError: no sentence with a dependency that the model can read. Cancelled: by `progress`.
    """
    sentences = tuple(sentences)
    hits, distances, skipped = defaultdict(list), defaultdict(Counter), 0
    for done, sentence in enumerate(sentences, 1):
        trace = bert.trace(sentence.text, hidden_states=False)
        if any(trace.truncated):
            skipped += 1
        else:
            _count(trace, sentence, hits, distances)
        report(progress, done, len(sentences))
    if not hits:
        raise InputError("There is no sentence with a dependency that this model can read.")
    by_size = sorted(hits, key=lambda name: (-len(hits[name]), name))
    relations = {name: _agreement(hits[name], distances[name]) for name in by_size}
    everything = [hit for name in by_size for hit in hits[name]]
    return SyntaxAgreement(
        _agreement(everything, sum(distances.values(), Counter())), relations, len(sentences), skipped
    )


def _sentence(rows):
    words, heads, relations, tags = [], [], [], []
    for number, fields in rows:
        head = "0" if fields[6] == "_" else fields[6]  # files that are only tagged
        if not (head.isdecimal() and int(head) <= len(rows)):
            raise ConlluError(f"Line {number}: the head {head!r:.20} is no word of the sentence.")
        words.append(fields[1])
        heads.append(int(head))
        relations.append(fields[7])
        tags.append(fields[3])
    return ParsedSentence(tuple(words), tuple(heads), tuple(relations), tuple(tags))


def _positions(trace, words):
    """The token positions of each word of a text made of words with a space between."""
    groups, start = [], 0
    for word in words:
        end = start + len(word)
        groups.append(
            [
                position
                for position, (source, span) in enumerate(zip(trace.sources, trace.offsets))
                if source is not None and start <= span[0] and span[1] <= end
            ]
        )
        start = end + 1
    return groups


def _count(trace, sentence, hits, distances):
    groups = _positions(trace, sentence.words)
    attention = word_attention(trace, groups)
    own = np.arange(len(groups))
    attention[:, :, own, own] = -1
    attention[..., [word for word in own if not groups[word]]] = -1
    looked_at, looking = attention.argmax(axis=-1), attention.argmax(axis=-2)  # [L, N, W]
    for word, (head, relation) in enumerate(zip(sentence.heads, sentence.relations)):
        if head and groups[word] and groups[head - 1]:
            hits[relation].append((looked_at[..., word] == head - 1, looking[..., word] == head - 1))
            distances[relation][head - 1 - word] += 1


def _agreement(hits, distances):
    dependent, head = (np.mean(side, axis=0, dtype=np.float64) for side in zip(*hits))
    offset, often = max(distances.items(), key=lambda item: (item[1], -abs(item[0]), item[0]))
    return RelationAgreement(len(hits), dependent, head, offset, often / len(hits))
