"""Sentence similarity: the cosines of the vectors of sentences, and the nearest texts of a file.

Dimension legend: S sentences, C texts that are searched, H hidden.

Source: Reimers & Gurevych 2019, "Sentence-BERT".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, refuse_one_alone, report
from bert_tf.explain.datasets.text_rows import file_kind, texts_of_file
from bert_tf.explain.representations.vectors import VectorSimilarity, cosine_similarities
from bert_tf.explain.representations.word_senses import lines_of_file
from bert_tf.inference.predictions import check_top_k
from bert_tf.inference.sentence_vectors import POOLINGS, pooling_of, sentence_vectors
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert

_MAP = "bert_tf.plots.representations.sentence_similarity:similarity_of_sentences"
_NEAREST = "bert_tf.plots.representations.sentence_similarity:nearest_texts"


@dataclass(frozen=True)
class SimilarText(Result):
    """A text that was found.

    Attributes:
        number: int. Its number among the texts that were searched, from 1.
        text: str. The text.
        similarity: float. The cosine with the sentence, -1 to 1.
    """

    number: int
    text: str
    similarity: float


@dataclass(frozen=True, eq=False)
class SentenceSimilarity(Result):
    """The similarity of sentences.

    Attributes:
        sentences: tuple of S str.
        pooling: str. How the vectors are computed.
        cosines: np.ndarray. float32 [S, S].
        nearest: tuple of S tuples of `SimilarText`, the most similar first; () if nothing was searched.
        vectors: np.ndarray. float32 [S, H].
    """

    sentences: tuple
    pooling: str
    cosines: np.ndarray
    nearest: tuple
    vectors: np.ndarray = field(metadata={"export": "arrays"})

    @classmethod
    def of(
        cls,
        sentences: Sequence[str],
        pooling: str,
        vectors: np.ndarray,
        texts: Sequence[str] = (),
        text_vectors: np.ndarray | None = None,
        top_k: int = 5,
    ) -> SentenceSimilarity:
        """The result for vectors.

        Args:
            sentences, pooling, vectors: The fields.
            texts: sequence of C str. The texts that are searched.
            text_vectors: np.ndarray. float [C, H]; None without texts.
            top_k: int. The most texts that are found for a sentence.
        """
        nearest: tuple = ()
        if text_vectors is not None:
            cosines = cosine_similarities(vectors, text_vectors)
            order = np.argsort(-cosines, axis=1, kind="stable")[:, :top_k]
            nearest = tuple(
                tuple(SimilarText(int(place) + 1, texts[place], float(row[place])) for place in places)
                for row, places in zip(cosines, order)
            )
        return cls(tuple(sentences), pooling, cosine_similarities(vectors), nearest, vectors)

    @property
    def figures(self) -> dict[str, str]:
        """The matrix of the cosines, and the texts that were found if a file was searched."""
        return {"matrix": _MAP, **({"nearest": _NEAREST} if self.nearest else {})}

    @property
    def similarity(self) -> VectorSimilarity:
        """The cosines as a `VectorSimilarity`, the sentences by their numbers."""
        labels = tuple(str(number) for number in range(1, len(self.sentences) + 1))
        return VectorSimilarity(labels=labels, cosines=self.cosines, texts=self.sentences)

    def to_frame(self) -> pd.DataFrame:
        """A row for each text that was found; without a search a row for each pair of sentences."""
        if self.nearest:
            return frame(
                [
                    {"sentence": sentence, "text": one.text, "number": one.number, "cosine": one.similarity}
                    for sentence, texts in zip(self.sentences, self.nearest)
                    for one in texts
                ]
            )
        rows, columns = np.triu_indices(len(self.sentences), 1)
        pairs = {"sentence": rows, "other": columns}
        texts = {name: [self.sentences[place] for place in places] for name, places in pairs.items()}
        return frame({**texts, "cosine": self.cosines[rows, columns]})


def text_vectors(
    bert: Bert,
    texts: Sequence[str],
    pooling: str | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> np.ndarray:
    """The vectors of texts.

    Args:
        bert: Bert. The model.
        texts: sequence of C str.
        pooling: str. As in `sentence_vectors`.
        progress: callable(done, total). Called with numbers of texts; it cancels by returning False.
    Returns:
        float32 [C, H].
    Raises:
        InputError: there are no texts, a text is empty, or the model has no such pooling.
        Cancelled: by `progress`.
    """
    if not len(texts):
        raise InputError("Give at least one text.")
    vectors = []
    for vector in sentence_vectors(bert, texts, pooling):
        vectors.append(vector)
        report(progress, len(vectors), len(texts))
    return np.stack(vectors)


def sentence_similarity(
    bert: Bert,
    sentences: Sequence[str],
    input: Sequence[str] | None = None,
    pooling: str | None = None,
    top_k: int = 5,
    progress: Callable[[int, int], Any] | None = None,
) -> SentenceSimilarity:
    """How similar sentences are, and which texts are most similar to each of them.

    The vectors are those of a model of sentence similarity (of sentence-transformers, or of `finetune similarity`).
    Those of another model were not trained so that their cosine says how similar texts are.

    Args:
        bert: Bert. The model.
        sentences: sequence of S str.
        input: sequence of C str. The texts that are searched; None for no search.
        pooling: str. As in `sentence_vectors`.
        top_k: int. The most texts that are found for a sentence.
        progress: callable(done, total). Called with numbers of texts; it cancels by returning False.
    Returns:
        `SentenceSimilarity`.
    Raises:
        InputError: no sentences, fewer than two without a search, an empty text, or a pooling the model does not have.
        Cancelled: by `progress`.

    Example:
        >>> bert = bert_tf.load()
        >>> found = sentence_similarity(bert, ["It rains.", "The sun shines."], input=["Wet weather.", "A warm day."])
        >>> found.cosines.shape, found.nearest[0][0].text
    """
    check_top_k(top_k)
    refuse_one_alone(sentences, "sentences")
    refuse_one_alone(input, "texts")
    texts = _searched(sentences, input)
    vectors = text_vectors(bert, [*sentences, *texts], pooling, progress)
    count = len(sentences)
    searched = None if input is None else vectors[count:]
    return SentenceSimilarity.of(sentences, pooling_of(bert, pooling), vectors[:count], texts, searched, top_k)


def _searched(sentences, input):
    """The texts to search without empty ones; raises InputError if there is nothing to compare."""
    texts = [text for text in input or () if text.strip()]
    if input is not None and not texts:
        raise InputError("The input has no texts.")
    if not sentences or input is None and len(sentences) < 2:
        raise InputError("Give at least two sentences, or one and --input FILE to search.")
    return texts


def _texts_to_search(path):
    """The lines of a file, of which a tab is no end, or the texts of a table or of JSON lines."""
    return lines_of_file(path) if file_kind(path) == "text" else texts_of_file(path)


ANALYSIS = Analysis(
    name="sentence-similarity",
    function=sentence_similarity,
    summary="how similar sentences are, and the most similar texts of a file",
    source="Reimers & Gurevych 2019, Sentence-BERT",
    inputs="none",
    options=(
        Option(
            "sentences", "the sentences", default=(), several=True, metavar="SENTENCE", positional=True, required=True
        ),
        Option(
            "input",
            'a file of texts to search, one on each line, or .jsonl, .csv, .tsv; "-" reads standard input',
            metavar="FILE",
            parse=_texts_to_search,
        ),
        Option("pooling", "how a text's vector is computed (default: the model's own, else mean)", choices=POOLINGS),
        replace(TOP_K, help="number of texts that are found for a sentence"),
    ),
    check=lambda options: _searched(options["sentences"], options["input"]),
)
