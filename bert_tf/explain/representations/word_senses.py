"""One word in many sentences: its vectors laid out, and whether they keep its senses apart, layer by layer.

Dimension legend: L layers, W occurrences, H hidden, K dimensions of the figure.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, checked_text
from bert_tf.explain.representations.projection import PROJECTIONS, project_to_plane
from bert_tf.explain.representations.vectors import VectorSimilarity, cosine_similarities, occurrences
from bert_tf.results import Result, frame

# Cosines this near are equal: float32 rounding tells them apart, not the model.
_TIE = 1e-6


@dataclass(frozen=True, eq=False)
class SenseSeparation(
    Result,
    figures={
        "nearest": "bert_tf.plots.representations.word_senses:sense_nearest",
        "cosines": "bert_tf.plots.representations.word_senses:sense_cosines",
    },
):
    """How near occurrences of one sense are to each other, and to those of other senses.

    Attributes:
        within, between: float64 [L+1], mean cosine of two occurrences of the same sense, of different ones.
        nearest: float64 [L+1], share of the occurrences whose nearest other one has the same sense; of
            equally near ones (equal vectors, as at the input) their share.
    """

    within: np.ndarray
    between: np.ndarray
    nearest: np.ndarray

    def to_frame(self):
        """A row for each hidden state, 0 the embeddings."""
        columns = {"nearest": self.nearest, "within": self.within, "between": self.between}
        return frame({"hidden_state": np.arange(len(self.nearest)), **columns})


@dataclass(frozen=True, eq=False)
class WordSenses(Result):
    """One word in many sentences.

    Attributes:
        word: its spelling. sentences: that of each of the W occurrences. senses: their labels, "" where none is given.
        layer: of the vectors that are laid out, 0 the embeddings.
        projection: how they are laid out, one of `PROJECTIONS`. coordinates: float64 [W, K].
        explained_variance_ratio: float64 [K], the share of the variance along each component of "pca"; else None.
        cosines: float32 [W, W], of the vectors after the layer.
        separation: `SenseSeparation`; None without two senses.
        vectors: float32 [L+1, W, H], the word at every state.
    """

    word: str
    sentences: tuple
    senses: tuple
    layer: int
    projection: str
    coordinates: np.ndarray
    explained_variance_ratio: Optional[np.ndarray]
    cosines: np.ndarray
    separation: Optional[SenseSeparation]
    vectors: np.ndarray = field(metadata={"export": "arrays"})

    @classmethod
    def of(cls, word, sentences, senses, vectors, layer, projection, coordinates, explained_variance_ratio):
        """The result of occurrences that are laid out; the arguments are its fields."""
        try:
            separation = sense_separation(vectors, senses)
        except InputError:
            separation = None  # without senses there is nothing to keep apart
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
    def figures(self):
        """The figures; that of the senses where there are two."""
        module = "bert_tf.plots.representations.word_senses"
        found = {"points": f"{module}:word_points", "similarity": f"{module}:sense_map"}
        return found if self.separation is None else {**found, "senses": f"{module}:sense_curves"}

    @property
    def similarity(self):
        """The cosines as a `VectorSimilarity`, occurrences of one sense together."""
        order = sorted(range(len(self.senses)), key=lambda index: self.senses[index])
        return VectorSimilarity(
            labels=tuple(self.senses[index] or str(index + 1) for index in order),
            cosines=self.cosines[np.ix_(order, order)],
            texts=tuple(self.sentences[index] for index in order),
        )

    def to_frame(self):
        """A row for each occurrence."""
        axes = dict(zip("xyz", self.coordinates.T))
        return frame({"sentence": self.sentences, "sense": self.senses, "layer": self.layer, **axes})


def labelled_sentences(lines):
    """Sentences with their senses, as people write them down.

    Args:
        lines: strings: a sentence, or "sense | sentence", or the two with a tab between.
    Returns:
        list of (sense, sentence), stripped; "" where no sense is given. Empty lines are passed over.
    """
    found = []
    for line in lines:
        sense, parted, text = line.partition("\t" if "\t" in line else "|")
        sense, text = (sense, text) if parted else ("", line)
        if text.strip():
            found.append((sense.strip(), text.strip()))
    return found


def sense_separation(vectors, senses):
    """How well every layer tells a word's senses apart.

    Args:
        vectors: float [L+1, W, H], as in `Occurrences`. senses: W labels.
    Returns:
        `SenseSeparation`.
    Raises:
        InputError: not one label an occurrence; fewer than two senses, or none that occurs twice.
    """
    senses = np.asarray(senses)
    if len(senses) != vectors.shape[1]:
        raise InputError(f"There are {len(senses)} labels for {vectors.shape[1]} occurrences; give one each.")
    same = senses[:, None] == senses
    others = ~np.eye(len(senses), dtype=bool)
    if same.all() or not (same & others).any():
        raise InputError("Telling senses apart needs two senses at least, one of them in two sentences.")
    within, between, nearest = [], [], []
    for layer in vectors:
        cosines = cosine_similarities(layer)
        within.append(cosines[same & others].mean(dtype=np.float64))
        between.append(cosines[~same].mean(dtype=np.float64))
        others_cosines = np.where(others, cosines, -np.inf)
        closest = others_cosines >= others_cosines.max(axis=1, keepdims=True) - _TIE
        nearest.append(((closest & same).sum(axis=1) / closest.sum(axis=1)).mean())
    return SenseSeparation(*(np.array(part, np.float64) for part in (within, between, nearest)))


def word_senses(
    bert, word, sentences=(), input=None, layer=None, projection="pca", dimensions=2, most=300, progress=None
):
    """One word in many sentences: its vectors after a layer laid out, and how far its senses lie apart by layer.

    Args:
        bert: a `Bert`. word: its spelling; upper and lower case count as one.
        sentences: strings, as `labelled_sentences` takes them.
        input: in the place of `sentences`, the lines of a file of them.
        layer: 0 the embeddings; None for the last.
        projection: one of `PROJECTIONS`. dimensions: K, 2 or 3.
        most: occurrences that are read, the first ones.
        progress: callable(done, total) in sentences; returning False cancels.
    Returns:
        `WordSenses`.
    Raises:
        WordNotFound: the word is in none. InputError: no sentences, no such layer or projection, or too few
            occurrences for it. Cancelled: by `progress`.
    """
    labelled = _labelled(word, sentences, input)
    layers = bert.config.num_hidden_layers
    layer = layers if layer is None else layer
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0, what goes in, to {layers}.")
    found = occurrences(bert, [text for _, text in labelled], word, progress, most)
    senses, texts = zip(*(labelled[text] for text in found.texts))
    laid_out = project_to_plane(found.vectors[layer], projection, dimensions)
    return WordSenses.of(word, texts, senses, found.vectors, layer, projection, *laid_out)


def _labelled(word, sentences, input):
    """Pairs (sense, sentence); InputError where nothing, or both, is given."""
    checked_text(word, "WORD")
    if bool(sentences) == (input is not None):
        raise InputError("Give either sentences or --input FILE.")
    labelled = labelled_sentences(sentences if input is None else input)
    if not labelled:
        raise InputError("There is no sentence to read.")
    return labelled


def _lines(path):
    """The lines of a file, or of standard input for "-"."""
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    try:
        return tuple(data.decode("utf-8-sig").splitlines())
    except UnicodeDecodeError as error:
        raise InputError(f"The file is not text in UTF-8 (byte {error.start}): save it as UTF-8.") from None


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
            'sentences; "sense | sentence" where it is known',
            default=(),
            several=True,
            metavar="SENTENCE",
            positional=True,
        ),
        Option("input", 'a file of such lines, or with a tab; "-" reads standard input', metavar="FILE", parse=_lines),
        Option("layer", "after which layer, 0 the embeddings (default: the last)", int, metavar="L"),
        Option("projection", "how the vectors are laid out", default="pca", choices=PROJECTIONS, aliases=("by",)),
        Option("dimensions", "of the figure", int, 2, choices=(2, 3), metavar="K"),
        Option("most", "occurrences read at most, the first ones", int, 300, minimum=1, metavar="N"),
    ),
    check=lambda options: _labelled(options["word"], options["sentences"], options["input"]),
    aliases=("meaning",),
)
