"""Word senses: the vectors of one word in many sentences, and how well each layer separates its senses.

Dimension legend: L layers, W occurrences, H hidden, K dimensions of the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, WordNotFound, check_hidden_state, checked_text, refuse_one_alone, report
from bert_tf.explain.datasets.text_rows import file_kind, lines_of, shows_text, text_of_file
from bert_tf.explain.representations.projection import PROJECTIONS, project_to_plane
from bert_tf.explain.representations.vectors import VectorSimilarity, cosine_similarities
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.words import folded, words_of
from bert_tf.results import Result, frame
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert

# Cosines with a smaller difference are equal: it comes from float32 rounding, not from the model.
_TIE = 1e-6
# Texts in one forward pass: few, because other users wait for the model meanwhile.
_TEXTS = 8


@dataclass(frozen=True, eq=False)
class SenseSeparation(
    Result,
    figures={
        "nearest": "bert_tf.plots.representations.word_senses:sense_nearest",
        "cosines": "bert_tf.plots.representations.word_senses:sense_cosines",
    },
):
    """The similarity of occurrences with the same sense, and with different senses; those without a label are left out.

    Attributes:
        within, between: np.ndarray. float64 [L+1], the mean cosine of two occurrences with the same sense, and with
            different senses.
        nearest: np.ndarray. float64 [L+1], the share of occurrences whose nearest other occurrence has the same sense,
            of those whose sense occurs at least twice. Of several equally near ones (equal vectors, as at the input)
            the share with the same sense counts.
    """

    within: np.ndarray
    between: np.ndarray
    nearest: np.ndarray

    def to_frame(self) -> pd.DataFrame:
        """A row for each hidden state, 0 the embeddings."""
        columns = {"nearest": self.nearest, "within": self.within, "between": self.between}
        return frame({"hidden_state": np.arange(len(self.nearest)), **columns})


@dataclass(frozen=True, eq=False)
class WordSenses(Result):
    """One word in many sentences.

    Attributes:
        word: str. The word.
        sentences: tuple of str. The sentence of each of the W occurrences.
        senses: tuple of str. The label of each occurrence; "" without a label.
        layer: int. The layer of the projected vectors, 0 the embeddings.
        projection: str. One of `PROJECTIONS`.
        coordinates: np.ndarray. float64 [W, K].
        explained_variance_ratio: np.ndarray. float64 [K], the share of the variance along each component of "pca"; None
            for other projections.
        cosines: np.ndarray. float32 [W, W], of the vectors after the layer.
        separation: SenseSeparation. None without two senses.
        vectors: np.ndarray. float32 [L+1, W, H], the vectors of the occurrences at every hidden state.
    """

    word: str
    sentences: tuple
    senses: tuple
    layer: int
    projection: str
    coordinates: np.ndarray
    explained_variance_ratio: np.ndarray | None
    cosines: np.ndarray
    separation: SenseSeparation | None
    vectors: np.ndarray = field(metadata={"export": "arrays"})

    @classmethod
    def of(
        cls,
        word: str,
        sentences: Iterable[str],
        senses: Sequence[str],
        vectors: np.ndarray,
        layer: int,
        projection: str,
        coordinates: np.ndarray,
        explained_variance_ratio: np.ndarray | None,
    ) -> WordSenses:
        """The result for projected occurrences; it computes the cosines and the separation. The arguments are its
        fields.
        """
        try:
            separation: SenseSeparation | None = sense_separation(vectors, senses)
        except InputError:
            separation = None  # there are no two senses to separate
        return cls(
            word=word,
            sentences=tuple(sentences),
            senses=tuple(senses),
            layer=layer,
            projection=projection,
            coordinates=coordinates,
            explained_variance_ratio=explained_variance_ratio,
            cosines=cosine_similarities(vectors[layer]),
            separation=separation,
            vectors=vectors,
        )

    @property
    def figures(self) -> dict[str, str]:
        """The figures; the figure of the senses only if there are two senses."""
        module = "bert_tf.plots.representations.word_senses"
        figures = {"points": f"{module}:word_points", "similarity": f"{module}:sense_map"}
        return figures if self.separation is None else {**figures, "senses": f"{module}:sense_curves"}

    @property
    def similarity(self) -> VectorSimilarity:
        """The cosines as a `VectorSimilarity`, with occurrences of the same sense next to each other."""
        order = sorted(range(len(self.senses)), key=lambda index: self.senses[index])
        return VectorSimilarity(
            labels=tuple(self.senses[index] or str(index + 1) for index in order),
            cosines=self.cosines[np.ix_(order, order)],
            texts=tuple(self.sentences[index] for index in order),
        )

    def to_frame(self) -> pd.DataFrame:
        """A row for each occurrence."""
        axes = dict(zip("xyz", self.coordinates.T))
        return frame({"sentence": self.sentences, "sense": self.senses, "layer": self.layer, **axes})


def labelled_sentences(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Split lines into senses and sentences.

    Args:
        lines: sequence of str. Each line is a sentence, or "sense | sentence", or the two with a tab between them.
    Returns:
        list of (sense, sentence) without spaces around them; "" for a missing sense. Lines whose sentence
            shows nothing are skipped.
    """
    labelled = []
    for line in lines:
        sense, separator, text = line.partition("\t" if "\t" in line else "|")
        sense, text = (sense, text) if separator else ("", line)
        if shows_text(text):
            labelled.append((sense.strip(), text.strip()))
    return labelled


def sense_separation(vectors: np.ndarray, senses: Sequence[str]) -> SenseSeparation:
    """How well every layer separates the senses of a word.

    Args:
        vectors: np.ndarray. float [L+1, W, H], as in `Occurrences`.
        senses: sequence of str. W labels; "" without a label. Occurrences without a label are left out.
    Returns:
        `SenseSeparation`.
    Raises:
        InputError: not one label for each occurrence, fewer than two senses, or no sense that occurs twice.
    """
    labels = np.asarray(senses, str)
    if len(labels) != vectors.shape[1]:
        raise InputError(f"There are {len(labels)} labels for {vectors.shape[1]} occurrences; give one each.")
    is_labelled = labels != ""
    labels, vectors = labels[is_labelled], vectors[:, is_labelled]
    same = labels[:, None] == labels
    others = ~np.eye(len(labels), dtype=bool)
    if same.all() or not (same & others).any():
        raise InputError("Separating senses needs at least two senses, one of them in two sentences.")
    has_another = (same & others).any(axis=1)
    within, between, nearest = [], [], []
    for layer in vectors:
        cosines = cosine_similarities(layer)
        within.append(cosines[same & others].mean(dtype=np.float64))
        between.append(cosines[~same].mean(dtype=np.float64))
        others_cosines = np.where(others, cosines, -np.inf)
        closest = others_cosines >= others_cosines.max(axis=1, keepdims=True) - _TIE
        nearest.append(((closest & same).sum(axis=1) / closest.sum(axis=1))[has_another].mean())
    return SenseSeparation(*(np.array(part, np.float64) for part in (within, between, nearest)))


def word_senses(
    bert: Bert,
    word: str,
    sentences: Iterable[str] = (),
    input: Iterable[str] | None = None,
    layer: int | None = None,
    projection: str = "pca",
    dimensions: int = 2,
    most: int = 300,
    progress: Callable[[int, int], Any] | None = None,
) -> WordSenses:
    """The vectors of one word in many sentences: their projection after one layer, and their sense separation by layer.

    Args:
        bert: Bert. The model.
        word: str. The word; upper and lower case are the same.
        sentences: sequence of str. As in `labelled_sentences`.
        input: sequence of str. The lines of a file of sentences, in the place of `sentences`.
        layer: int. 0 the embeddings; None for the last.
        projection: str. One of `PROJECTIONS`.
        dimensions: int. K, 2 or 3.
        most: int. The most occurrences that are read, the first ones.
        progress: callable(done, total). Called with numbers of sentences; it cancels by returning False.
    Returns:
        `WordSenses`.
    Raises:
        WordNotFound: no sentence has the word.
        InputError: no sentences, no such layer or projection, or too few occurrences for it.
        Cancelled: by `progress`.

    Example:
        >>> bert = bert_tf.load()
        >>> result = word_senses(bert, "bank", ["river | They sat on the bank.", "money | The bank lent her money."])
        >>> result.coordinates.shape
    """
    labelled = _labelled(word, sentences, input)
    layers = bert.config.num_hidden_layers
    layer = layers if layer is None else layer
    check_hidden_state(layer, layers)
    occurring = occurrences(bert, [text for _, text in labelled], word, progress, most)
    senses, texts = zip(*(labelled[index] for index in occurring.texts))
    coordinates, ratios = project_to_plane(occurring.vectors[layer], projection, dimensions)
    return WordSenses.of(word, texts, senses, occurring.vectors, layer, projection, coordinates, ratios)


def _labelled(word, sentences, input):
    """Pairs (sense, sentence); raises InputError without a source of sentences, or with both."""
    checked_text(word, "WORD")
    refuse_one_alone(sentences, "sentences")
    refuse_one_alone(input, "lines")
    if bool(sentences) == (input is not None):
        raise InputError("Give either sentences or --input FILE.")
    labelled = labelled_sentences(sentences if input is None else input)
    if not labelled:
        raise InputError("The input has no sentences.")
    return labelled


def lines_of_file(path: str) -> tuple[str, ...]:
    """The lines of a file, or of standard input for "-".

    Raises: InputError if the file is not UTF-8, or if its name says that its lines are not plain text.
    """
    if file_kind(path) == "jsonl" or path.lower().endswith(".csv"):
        raise InputError(f"{path} is read as a sentence on each line: write its sentences to a .txt file.")
    return tuple(lines_of(text_of_file(path)))


@dataclass(frozen=True, eq=False)
class Occurrences:
    """All occurrences of one word in some texts.

    Attributes:
        texts: tuple of int. The index of the text of each occurrence.
        words: tuple of WordSpan. One for each occurrence.
        vectors: np.ndarray. float32 [L+1, W, H], the mean of the word's tokens at every hidden state, 0 the embeddings.
        cut: int. The number of texts that are longer than the model reads: the word was not looked for in their ends.
        left_out: int. The number of further occurrences, beyond the most that were asked for.
    """

    texts: tuple
    words: tuple
    vectors: np.ndarray
    cut: int
    left_out: int


def occurrences(
    bert: Bert,
    texts: Iterable[str],
    word: str,
    progress: Callable[[int, int], Any] | None = None,
    most: int | None = None,
) -> Occurrences:
    """The vectors of one word in many texts, such as "bank" by the river and "bank" for money.

    Args:
        bert: Bert. The model.
        texts: sequence of str. The texts.
        word: str. The word; upper and lower case, and composed and decomposed accents, are the same.
        progress: callable(done, total). Called with numbers of texts that have the word; it cancels by returning False.
        most: int. The most occurrences, the first ones; None for all.
    Returns:
        `Occurrences`, in the order of the texts. Texts without the word add none.
    Raises:
        WordNotFound: no text has the word.
        InputError, TextError: a text alone and not a list, an empty text or one that is not a text.
        Cancelled: by `progress`.
    """
    refuse_one_alone(texts, "texts")
    texts, wanted = list(texts), folded(checked_text(word, "word").strip())
    prepared = [prepare_input(bert.tokenizer, bert.max_length, text) for text in texts]
    matches = [
        [span for span in words_of(ready.encoding, ready.text_a) if folded(span.text) == wanted] for ready in prepared
    ]
    found = sum(map(len, matches))
    if most is not None:
        before = np.cumsum([0, *map(len, matches)])
        matches = [spans[: max(most - start, 0)] for spans, start in zip(matches, before)]
    with_word = [index for index, spans in enumerate(matches) if spans]
    if not with_word:
        where = "not in the text" if len(texts) == 1 else f"in none of the {len(texts)} texts"
        raise WordNotFound(f"The word {word!r:.60} is {where}.")
    text_indices, spans, vectors = [], [], []
    for start in range(0, len(with_word), _TEXTS):
        block = with_word[start : start + _TEXTS]
        batch = pad_batch([prepared[index] for index in block], pad_id=bert.tokenizer.pad_id)
        states = bert.runtime.run(batch, ("hidden_states",))["hidden_states"]  # L+1 of [B, T, H]
        for row, index in enumerate(block):
            for span in matches[index]:
                text_indices.append(index)
                spans.append(span)
                vectors.append([layer[row, list(span.positions)].mean(axis=0) for layer in states])
        report(progress, min(start + _TEXTS, len(with_word)), len(with_word))
    cut = sum(bool(ready.encoding.truncated) for ready in prepared)
    by_state = np.array(vectors, np.float32).swapaxes(0, 1)
    return Occurrences(tuple(text_indices), tuple(spans), by_state, cut, found - len(spans))


ANALYSIS = Analysis(
    name="word-senses",
    function=word_senses,
    summary="one word in many sentences: its vectors laid out, and its senses",
    source="Wiedemann et al. 2019, Does BERT Make Any Sense?",
    inputs="none",
    options=(
        Option("word", "the word; upper and lower case count as one", metavar="WORD", positional=True, required=True),
        Option(
            "sentences",
            'sentences; "sense | sentence" if the sense is known',
            default=(),
            several=True,
            metavar="SENTENCE",
            positional=True,
        ),
        Option(
            "input",
            'a file of such lines, with "|" or a tab; "-" reads standard input',
            metavar="FILE",
            parse=lines_of_file,
        ),
        Option("layer", "after which layer, 0 the embeddings (default: the last)", int, metavar="L"),
        Option("projection", "the projection of the vectors", default="pca", choices=PROJECTIONS, aliases=("by",)),
        Option("dimensions", "of the figure", int, 2, choices=(2, 3), metavar="K"),
        Option("most", "the most occurrences to read, the first ones", int, 300, minimum=1, metavar="N"),
    ),
    check=lambda options: _labelled(options["word"], options["sentences"], options["input"]),
    aliases=("meaning",),
)
