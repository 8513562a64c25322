"""How likely a text is to a model that reads both sides: each token predicted from all the others.

Dimension legend: T tokens, B rows, V vocabulary. Source: Salazar et al. 2020, "Masked Language Model
Scoring"; for words of several pieces Kauf and Ivanova 2023, "A Better Way to Do Masked Language Model
Scoring"; for minimal pairs Warstadt et al. 2020, "BLiMP".
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.errors import InputError, NothingToPredict, report, require_head
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.words import words_of
from bert_tf.tokenizers import Truncation


@dataclass(frozen=True, eq=False)
class PseudoLikelihood:
    """Scores of one text or pair.

    Attributes:
        text_a, text_b: the texts. tokens: T strings.
        log_probabilities: float64 [T], natural logarithm of each token's probability given the others; NaN
            for the special tokens the model adds and where the user typed "[MASK]".
        truncated: `Truncation`: what was cut off is not in the score.
    """

    text_a: str
    text_b: Optional[str]
    tokens: tuple
    log_probabilities: np.ndarray
    truncated: Truncation

    @property
    def total(self):
        """The pseudo-log-likelihood: the sum, in nats."""
        return float(np.nansum(self.log_probabilities))

    @property
    def perplexity(self):
        """Exp of the mean negative log-probability a token. Not comparable between vocabularies."""
        return float(np.exp(-np.nanmean(self.log_probabilities)))


@dataclass(frozen=True)
class MinimalPair:
    """Two texts of which a model is asked to prefer the first. margin: total of the first less that of the
    second, in nats; `preferred` if it is above 0."""

    good: PseudoLikelihood
    bad: PseudoLikelihood

    @property
    def margin(self):
        return self.good.total - self.bad.total

    @property
    def preferred(self):
        return self.margin > 0


def pseudo_likelihood(bert, text_a, text_b=None, within_word=True, progress=None):
    """Mask one token at a time and read the probability of what stood there.

    Args:
        bert: a `Bert` with an MLM head. text_a, text_b: as in `Bert.trace`.
        within_word: whether the later pieces of a token's word are masked with it (Kauf and Ivanova's
            PLL-word-l2r), so that "##hai" does not give "Shang" away; False is Salazar's score.
        progress: callable(done, total) in tokens; returning False cancels.
    Returns:
        `PseudoLikelihood`. As many copies of the input as tokens.
    Raises:
        InputError, TextError: as `Bert.trace`. NothingToPredict: only "[MASK]" in it. MissingHead: no MLM
            head.
        Cancelled: by `progress`.
    """
    require_head(bert.heads, "mlm", bert.name)
    ready = prepare_input(bert.tokenizer, bert.max_length, text_a, text_b)
    words = words_of(ready.encoding, ready.text_a, ready.text_b)
    hidden = {}  # position -> all positions masked to predict it
    for word in words:
        for place, position in enumerate(word.positions):
            if position not in ready.masks:
                hidden[position] = word.positions[place:] if within_word else (position,)
    if not hidden:
        raise NothingToPredict('There is no token to score: the text holds nothing but "[MASK]".')
    scores = np.full(ready.encoding.length, np.nan)
    places = list(hidden)
    block = max(1, TOKENS_PER_BATCH // ready.encoding.length)
    for start in range(0, len(places), block):
        chosen = places[start : start + block]
        scores[chosen] = _scores(bert, ready, chosen, hidden)
        report(progress, min(start + block, len(places)), len(places))
    return PseudoLikelihood(ready.text_a, ready.text_b, tuple(ready.encoding.tokens), scores, ready.encoding.truncated)


def minimal_pairs(bert, pairs, within_word=True, progress=None):
    """Which text of each pair the model finds likelier.

    Args:
        bert: a `Bert`. pairs: (good, bad) texts. within_word: as in `pseudo_likelihood`.
        progress: callable(done, total) in pairs; returning False cancels.
    Returns:
        tuple of `MinimalPair`.
    Raises:
        InputError: something that is no pair, or as `pseudo_likelihood`. Cancelled: by `progress`.
    """
    pairs = list(pairs)
    found = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"A minimal pair is two texts, not {pair!r:.60}.")
        found.append(MinimalPair(*(pseudo_likelihood(bert, text, None, within_word) for text in pair)))
        report(progress, len(found), len(pairs))
    return tuple(found)


def _scores(bert, ready, positions, hidden):
    """Log-probabilities of the tokens at B positions, one copy of the input each."""
    rows, length = len(positions), len(ready.token_ids)
    ids = np.repeat(ready.token_ids[None], rows, axis=0)
    for row, position in enumerate(positions):
        ids[row, list(hidden[position])] = bert.tokenizer.mask_id
    batch = {
        "token_ids": ids,
        "segment_ids": np.repeat(ready.segment_ids[None], rows, axis=0),
        "padding_mask": np.ones((rows, length), np.int32),
        "mask_positions": np.array(positions, np.int32)[:, None],
    }
    logits = bert.runtime.run(batch, ("mlm_logits",))["mlm_logits"][:, 0]  # [B, V]
    peaks = logits.max(axis=1)
    normalizers = peaks + np.log(np.exp(logits - peaks[:, None]).sum(axis=1, dtype=np.float64))
    return logits[np.arange(rows), ready.token_ids[positions]] - normalizers
