"""Whether a word's vectors keep its senses apart, layer by layer.

Dimension legend: L layers, W occurrences, H hidden. Pure NumPy.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.representations.vectors import cosine_similarities

# Cosines this near are equal: float32 rounding tells them apart, not the model.
_TIE = 1e-6


@dataclass(frozen=True, eq=False)
class SenseSeparation:
    """How near occurrences of one sense are to each other, and to those of other senses.

    Attributes:
        within, between: float64 [L+1], mean cosine of two occurrences of the same sense, of different ones.
        nearest: float64 [L+1], share of the occurrences whose nearest other one has the same sense; of
            equally near ones (equal vectors, as at the input) their share.
    """

    within: np.ndarray
    between: np.ndarray
    nearest: np.ndarray


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
