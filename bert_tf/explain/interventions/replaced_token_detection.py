"""ELECTRA's game: a generator puts words in the place of others, a discriminator says which ones.

Dimension legend: T tokens, P places, V vocabulary. Source: Clark et al. 2020, section 2.
"""

from dataclasses import dataclass, field

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, require_head
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.trace import sigmoid
from bert_tf.results import Result, frame
from bert_tf.user_errors import SEED


@dataclass(frozen=True, eq=False)
class ReplacedTokenResult(Result, figures={"scores": "bert_tf.plots.interventions.replaced_token_detection:scores"}):
    """One round.

    Attributes:
        generator, discriminator: names of the models. seed: of the choice and the draws.
        tokens: T strings as the discriminator read them. original_tokens: T strings of the user's text.
        positions: the P positions the generator filled, ascending.
        replaced: bool [T], whether another token than the original stands there.
        scores: float32 [T], the discriminator's probability that it was replaced.
        sources: T of "a" or None for the tokens the model adds.
        true_positives: how many of the replaced tokens have a score over one half.
        false_positives: how many of the text's own tokens have a score over one half.
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

    def __post_init__(self):
        detected = (self.scores > 0.5) & [source is not None for source in self.sources]
        object.__setattr__(self, "true_positives", int((detected & self.replaced).sum()))
        object.__setattr__(self, "false_positives", int((detected & ~self.replaced).sum()))

    def to_frame(self):
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


def detect_replaced_tokens(discriminator, text, generator, share=0.15, mask=(), seed=0):
    """`replace_and_detect` of a discriminator, with the text before the generator."""
    return replace_and_detect(generator, discriminator, text, share, mask, seed)


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


ANALYSIS = Analysis(
    name="replaced-token-detection",
    function=detect_replaced_tokens,
    summary="which tokens were replaced: ELECTRA's generator against its discriminator",
    source="Clark et al. 2020, ELECTRA",
    options=(
        Option("generator", "name or folder of the model that writes", required=True, metavar="M", model=True),
        Option("share", "of the tokens, written anew", float, 0.15, maximum=1, metavar="S"),
        Option("mask", "words that are written anew instead", several=True, default=(), metavar="WORD"),
        Option("seed", "of the choice and the draws", int, 0, parse=SEED, metavar="N"),
    ),
    inputs="text",
    needs=("replaced",),
    aliases=("replaced",),
)
