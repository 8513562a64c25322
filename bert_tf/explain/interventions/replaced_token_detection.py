"""Replaced token detection, ELECTRA's pretraining task: a generator replaces tokens and a discriminator finds them.

Dimension legend: T tokens, P places, V vocabulary. Source: Clark et al. 2020, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, require_head
from bert_tf.inference.model_inputs import batch_of, prepare_input
from bert_tf.inference.trace import sigmoid
from bert_tf.results import Result, frame
from bert_tf.user_errors import SEED

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.bert import Bert


@dataclass(frozen=True, eq=False)
class ReplacedTokenResult(Result, figures={"scores": "bert_tf.plots.interventions.replaced_token_detection:scores"}):
    """The result of one round.

    Attributes:
        generator, discriminator: str. Names of the models.
        seed: int. The seed of the choice of places and of the draws.
        tokens: tuple of str. The T tokens that the discriminator read.
        original_tokens: tuple of str. The T tokens of the user's text.
        positions: tuple of int. The P positions that the generator filled, ascending.
        replaced: np.ndarray. bool [T], whether the token differs from the original one.
        scores: np.ndarray. float32 [T], the discriminator's probability that the token was replaced.
        sources: tuple. T times "a", or None for the tokens that the model adds.
        true_positives: int. The number of replaced tokens with a score above one half.
        false_positives: int. The number of original tokens of the text with a score above one half.
    """

    generator: str
    discriminator: str
    seed: int
    tokens: tuple
    original_tokens: tuple
    positions: tuple
    replaced: np.ndarray
    scores: np.ndarray
    sources: tuple
    true_positives: int = field(init=False)
    false_positives: int = field(init=False)

    def __post_init__(self) -> None:
        detected = (self.scores > 0.5) & [source is not None for source in self.sources]
        object.__setattr__(self, "true_positives", int((detected & self.replaced).sum()))
        object.__setattr__(self, "false_positives", int((detected & ~self.replaced).sum()))

    def to_frame(self) -> pd.DataFrame:
        """A row for each token of the text."""
        inside = [position for position, source in enumerate(self.sources) if source is not None]
        return frame(
            {
                "position": inside,
                "token": [self.tokens[position] for position in inside],
                "original_token": [self.original_tokens[position] for position in inside],
                "generated": np.isin(inside, self.positions),
                "replaced": self.replaced[inside],
                "score": self.scores[inside],
                "correct": self.replaced[inside] == (self.scores[inside] > 0.5),
            }
        )


def replace_and_detect(
    generator: Bert, discriminator: Bert, text: str, share: float = 0.15, mask: Any = (), seed: int = 0
) -> ReplacedTokenResult:
    """Replace some tokens of a text with the generator, and score every token with the discriminator.

    As in training, the token at each place is drawn from the generator's probabilities while all places are masked. If
    the original token is drawn, it counts as original.

    Args:
        generator: Bert. A model with a masked-LM head.
        discriminator: Bert. A model with a replaced-token head and the same tokenizer.
        text: str. The text.
        share: float. The share of its tokens that the generator fills, at least one token; ignored if `mask` is given.
        mask: The places that the generator fills instead, as in `Bert.trace`.
        seed: int. The seed of the choice of places and of the draws.
    Returns:
        `ReplacedTokenResult`.
    Raises:
        MissingHead: one of the models lacks its head.
        InputError: different tokenizers, a bad share, or an empty text.
    """
    require_head(generator.heads, "mlm", generator.name)
    require_head(discriminator.heads, "replaced", discriminator.name)
    if not generator.tokenizer.cuts_alike(discriminator.tokenizer):
        raise InputError(
            f"{generator.name} and {discriminator.name} have different vocabularies or cut text otherwise: the "
            "discriminator cannot read the generator's tokens."
        )
    if not 0 < share <= 1:
        raise InputError(f"share is {share!r}; it must be above 0 and at most 1.")
    rng = np.random.default_rng(seed)
    max_length = min(generator.max_length, discriminator.max_length)
    ready = prepare_input(generator.tokenizer, max_length, text, mask=mask)
    places = ready.masks or _chosen(ready.encoding.sources, share, rng)
    original = np.array(ready.encoding.token_ids)
    ids = original.copy()
    ids[list(places)] = generator.tokenizer.mask_id
    logits = generator.mlm_logits(ids, ready.segment_ids, places)
    ids[list(places)] = [_drawn(row, rng) for row in logits]
    scores = replaced_scores(discriminator, ids, ready.segment_ids)
    vocab = generator.tokenizer.vocab
    tokens = tuple(vocab[index] for index in ids)
    encoding = ready.encoding
    return ReplacedTokenResult(
        generator.name,
        discriminator.name,
        seed,
        tokens,
        tuple(encoding.tokens),
        tuple(places),
        ids != original,
        scores,
        tuple(encoding.sources),
    )


def detect_replaced_tokens(
    discriminator: Bert, text: str, generator: Bert, share: float = 0.15, mask: Any = (), seed: int = 0
) -> ReplacedTokenResult:
    """`replace_and_detect` with the discriminator first, then the text, then the generator."""
    return replace_and_detect(generator, discriminator, text, share, mask, seed)


def replaced_scores(
    bert: Bert, token_ids: Sequence[int] | np.ndarray, segment_ids: Sequence[int] | np.ndarray
) -> np.ndarray:
    """The probability of each token of one input that it was replaced, float32 [T].

    Args:
        bert: Bert. A model with a replaced-token head.
        token_ids, segment_ids: np.ndarray. int32 [T].
    Raises:
        MissingHead: the model has no replaced-token head.
    """
    require_head(bert.heads, "replaced", bert.name)
    batch = batch_of(token_ids, segment_ids)
    return sigmoid(bert.runtime.run(batch, ("replaced_logits",))["replaced_logits"][0])


def _chosen(sources, share, rng):
    """Positions of a random share of the text's tokens, at least one, ascending."""
    inside = [position for position, source in enumerate(sources) if source is not None]
    count = max(1, round(share * len(inside)))
    return tuple(sorted(int(place) for place in rng.choice(inside, count, replace=False)))


def _drawn(logits, rng):
    """A token id drawn from the softmax of logits [V], by the Gumbel-max trick, which needs no probabilities."""
    return int(np.argmax(logits + rng.gumbel(size=logits.shape)))


ANALYSIS = Analysis(
    name="replaced-token-detection",
    function=detect_replaced_tokens,
    summary="which tokens were replaced: ELECTRA's generator against its discriminator",
    source="Clark et al. 2020, ELECTRA",
    options=(
        Option("generator", "name or folder of the generator", required=True, metavar="M", model=True),
        Option("share", "share of the tokens that the generator replaces", float, 0.15, maximum=1, metavar="S"),
        Option("mask", "words that the generator replaces instead", several=True, default=(), metavar="WORD"),
        Option("seed", "seed of the choice of tokens and of the draws", int, 0, parse=SEED, metavar="N"),
    ),
    inputs="text",
    needs=("replaced",),
    aliases=("replaced",),
)
