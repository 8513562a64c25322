"""Decodes a linear-chain CRF in NumPy: the best label sequence, and the probability of each label.

Source: Rabiner 1989, sections III A and B, in logarithms.

Shapes: W words of the chain, K labels. Transitions are those of `layers.crf.LinearChainCRF`.
"""

import numpy as np


def viterbi(logits: np.ndarray, transitions: np.ndarray) -> np.ndarray:
    """The label sequence with the highest score.

    Args:
        logits: float [W, K], one row for each word of the chain.
        transitions: float [K + 2, K].

    Returns: int [W].
    """
    logits, transitions = np.asarray(logits, np.float64), np.asarray(transitions, np.float64)
    words, count = logits.shape
    if words == 0:
        return np.zeros(0, np.int64)
    scores, back = transitions[count] + logits[0], np.zeros((words, count), np.int64)
    for word in range(1, words):
        paths = scores[:, None] + transitions[:count]
        back[word] = paths.argmax(axis=0)
        scores = paths.max(axis=0) + logits[word]
    labels = np.zeros(words, np.int64)
    labels[-1] = np.argmax(scores + transitions[count + 1])
    for word in range(words - 1, 0, -1):
        labels[word - 1] = back[word, labels[word]]
    return labels


def marginals(logits: np.ndarray, transitions: np.ndarray) -> np.ndarray:
    """The probability of each label of each word over all sequences, by forward and backward recursion.

    Args: as `viterbi`.

    Returns: float64 [W, K].
    """
    logits, transitions = np.asarray(logits, np.float64), np.asarray(transitions, np.float64)
    words, count = logits.shape
    if words == 0:
        return np.zeros((0, count))
    forward, backward = np.zeros((words, count)), np.zeros((words, count))
    forward[0], backward[-1] = transitions[count] + logits[0], transitions[count + 1]
    for word in range(1, words):
        forward[word] = logits[word] + np.logaddexp.reduce(forward[word - 1][:, None] + transitions[:count])
    for word in range(words - 2, -1, -1):
        backward[word] = np.logaddexp.reduce(transitions[:count] + logits[word + 1] + backward[word + 1], axis=1)
    total = forward + backward
    return np.exp(total - np.logaddexp.reduce(total, axis=1, keepdims=True))
