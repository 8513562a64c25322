"""ELECTRA's game: a generator puts words in the place of others, a discriminator says which ones.

Dimension legend: T tokens, P places, V vocabulary. Source: Clark et al. 2020, section 2.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.errors import InputError, require_head
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.trace import sigmoid


@dataclass(frozen=True, eq=False)
class ReplacedTokenResult:
    """One round.

    Attributes:
        tokens: T strings as the discriminator read them. original_tokens: T strings of the user's text.
        places: the P positions the generator filled, ascending.
        replaced: bool [T], whether another token than the original stands there.
        scores: float32 [T], the discriminator's probability that it was replaced.
        sources: T of "a" or None for the tokens the model adds.
    """

    tokens: tuple
    original_tokens: tuple
    places: tuple
    replaced: np.ndarray
    scores: np.ndarray
    sources: tuple

    @property
    def true_positives(self):
        """How many of the replaced tokens have a score over one half."""
        return int((self.replaced & (self.scores > 0.5)).sum())

    @property
    def false_positives(self):
        """How many of the text's own tokens have a score over one half."""
        inside = np.array([source is not None for source in self.sources])
        return int((inside & ~self.replaced & (self.scores > 0.5)).sum())


def replace_and_detect(generator, discriminator, text, share=0.15, mask=(), seed=0):
    """Let the generator replace some tokens of a text, and the discriminator score every token.

    As in training, each place is drawn from the generator's own probabilities with all places hidden, and a
    draw of the very token that stood there counts as original.

    Args:
        generator: a `Bert` with a masked-LM head.
        discriminator: a `Bert` with a replaced-token head and the same vocabulary.
        text: the text. share: of its tokens to be filled anew, at least one; unused where `mask` is given.
        mask: what to fill instead, as in `Bert.trace`. seed: of the choice and the draws.
    Returns:
        `ReplacedTokenResult`.
    Raises:
        MissingHead: either lacks its head. InputError: another vocabulary, a bad share, or an empty text.
    """
    require_head(generator.heads, "mlm", generator.name)
    require_head(discriminator.heads, "replaced", discriminator.name)
    if generator.tokenizer.vocab != discriminator.tokenizer.vocab:
        raise InputError(
            f"{generator.name} and {discriminator.name} have different vocabularies: the second could not read "
            "what the first writes."
        )
    if not 0 < share <= 1:
        raise InputError(f"share is {share!r}; it must be above 0 and at most 1.")
    rng = np.random.default_rng(seed)
    most = min(generator.max_length, discriminator.max_length)
    ready = prepare_input(generator.tokenizer, most, text, mask=mask)
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
        tokens, tuple(encoding.tokens), tuple(places), ids != original, scores, tuple(encoding.sources)
    )


def replaced_scores(bert, token_ids, segment_ids):
    """For each token of one sequence the probability that it was put there, float32 [T].

    Args:
        bert: a `Bert`. token_ids, segment_ids: int32 [T].
    Raises:
        MissingHead: the model has no replaced-token head.
    """
    require_head(bert.heads, "replaced", bert.name)
    batch = {
        "token_ids": np.asarray(token_ids, np.int32)[None],
        "segment_ids": np.asarray(segment_ids, np.int32)[None],
        "padding_mask": np.ones((1, len(token_ids)), np.int32),
    }
    return sigmoid(bert.runtime.run(batch, ("replaced_logits",))["replaced_logits"][0])


def _chosen(sources, share, rng):
    inside = [position for position, source in enumerate(sources) if source is not None]
    count = max(1, round(share * len(inside)))
    return tuple(sorted(int(place) for place in rng.choice(inside, count, replace=False)))


def _drawn(logits, rng):
    """A token id drawn from the softmax of logits [V] (the Gumbel-max way: no probabilities are built)."""
    return int(np.argmax(logits + rng.gumbel(size=logits.shape)))
