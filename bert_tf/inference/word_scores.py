"""The scores of words of several pieces at masked words, by the pseudo-log-likelihood of their pieces.

Source: Salazar et al. 2020, "Masked Language Model Scoring".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import InputError
from bert_tf.inference.predictions import require_masks, top_probabilities, vocabulary_id
from bert_tf.inference.words import words_of
from bert_tf.results import Result, frame

if TYPE_CHECKING:  # pandas takes long to import
    import pandas as pd

    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.tokenizers import BaseTokenizer


@dataclass(frozen=True)
class WordScore(Result):
    """The score of a word of several pieces in the place of a masked word.

    A pseudo-log-likelihood is no logarithm of a probability: each piece is predicted while the others are visible. It
    compares words of as many pieces with each other, not with the probability of a single token.

    Attributes:
        word: str. The word.
        positions: tuple of int. The positions of the masks that the word stands for.
        pieces: tuple of str. Its tokens.
        log_probabilities: tuple of float. The natural logarithm of each piece's probability while it alone is masked
            and the other pieces are visible; all other masks stay masked.
    """

    word: str
    positions: tuple[int, ...]
    pieces: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def pseudo_log_likelihood(self) -> float:
        """The sum of `log_probabilities`, in nats."""
        return float(sum(self.log_probabilities))

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes and the sum, for JSON."""
        return {
            "word": self.word,
            "positions": list(self.positions),
            "pieces": list(self.pieces),
            "log_probabilities": list(self.log_probabilities),
            "pseudo_log_likelihood": self.pseudo_log_likelihood,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each piece."""
        return frame({"piece": self.pieces, "log_probability": self.log_probabilities})


def split_targets(tokenizer: BaseTokenizer, words: str | Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divide target words into those that are single tokens and those of several pieces.

    Raises:
        InputError: a word is empty or has characters that the vocabulary lacks.
    """
    single, several = [], []
    for word in [words] if isinstance(words, str) else words:
        try:
            vocabulary_id(tokenizer, word)
            single.append(word)
        except InputError:
            pieces = tokenizer.tokenize(word) if isinstance(word, str) and word.strip() else None
            if pieces is None or len(pieces) < 2 or tokenizer.unk_id in pieces.ids:
                raise
            several.append(word)
    return tuple(dict.fromkeys(single)), tuple(dict.fromkeys(several))


def score_words(bert: Bert, trace: Trace, words: str | Iterable[str]) -> tuple[WordScore, ...]:
    """Score words of several pieces in the place of every masked word of a trace.

    The pieces of one masked word are replaced together, however many they are. Each piece takes a forward pass.

    Args:
        bert: `Bert`. The model of the trace.
        trace: `Trace`. It must have at least one mask.
        words: str or iterable of str. The words.

    Returns:
        Tuple of `WordScore`, for each masked word in ascending order of position and each of `words`.

    Raises:
        NothingToPredict: there is no mask.
        MissingHead: the model has no MLM head.
        InputError: a word is empty or has characters that the vocabulary lacks, or the text becomes longer than the
            model reads.
    """
    require_masks(trace)
    words = (words,) if isinstance(words, str) else tuple(words)
    for word in words:
        ids = bert.tokenizer.tokenize(word).ids if isinstance(word, str) and word.strip() else ()
        if not len(ids) or bert.tokenizer.unk_id in ids:
            raise InputError(f"{word!r:.60} cannot be scored: it is not made of pieces of this model's vocabulary.")
    return tuple(_score(bert, trace, positions, word) for positions in _masked_words(trace) for word in words)


def _masked_words(trace: Trace) -> list[tuple[int, ...]]:
    """The positions of each masked word: neighbouring masks of one word count together."""
    masked: list[tuple[int, ...]] = []
    for word in words_of(trace, trace.text_a, trace.text_b):
        for position in word.positions:
            if position not in trace.masks:
                continue
            if masked and masked[-1][-1] == position - 1 and position != word.positions[0]:
                masked[-1] = (*masked[-1], position)
            else:
                masked.append((position,))
    return masked


def _score(bert: Bert, trace: Trace, positions: tuple[int, ...], word: str) -> WordScore:
    start, end = positions[0], positions[-1] + 1
    text = trace.text_b if trace.sources[start] == "b" else trace.text_a
    # A byte-level tokenizer has other pieces for a word after a space.
    before = (text or "")[: trace.offsets[start][0]]
    pieces = bert.tokenizer.tokenize(f" {word}" if before[-1:].isspace() else word)
    ids = np.concatenate([trace.token_ids[:start], pieces.ids, trace.token_ids[end:]]).astype(np.int32)
    segments = np.concatenate(
        [trace.segments[:start], np.full(len(pieces), trace.segments[start]), trace.segments[end:]]
    ).astype(np.int32)
    if len(ids) > bert.max_length:
        raise InputError(
            f"With {word!r:.60} the text has {len(ids)} tokens; the model reads {bert.max_length}. Shorten the text."
        )
    scores = []
    for place in range(start, start + len(pieces)):
        masked = ids.copy()
        masked[place] = bert.tokenizer.mask_id
        logits = bert.mlm_logits(masked, segments, [place])
        _, _, (normalizer,) = top_probabilities(logits, 1)
        scores.append(float(logits[0, ids[place]] - normalizer))
    return WordScore(word, positions, tuple(pieces.tokens), tuple(scores))
