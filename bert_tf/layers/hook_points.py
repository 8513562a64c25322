"""The names, shapes and meanings of the hook points: values in an encoder layer that a function can read or replace.

The names are those of TransformerLens (Nanda and Bloom 2022).

B batch, T tokens, H hidden size, N heads, D head size, F intermediate size.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

#: Added to the attention scores of padded keys: far below any score of a token, and finite in bfloat16 and float16 too.
MASKED_SCORE = -30000.0


@dataclass(frozen=True)
class HookPoint:
    """A named value within an encoder layer.

    Attributes:
        name: str. The name.
        shape: str. The axes, as letters of this module's legend.
        meaning: str. The meaning in a few words.
    """

    name: str
    shape: str
    meaning: str

    @property
    def stacks_axis(self) -> int:
        """The axis along which the values of parallel stacks are joined."""
        return 1 if "N" in self.shape else -1


#: In the order of the computation. BERT normalizes after each residual sum (post-LN), and the normalized values are the
#: residual stream. So `resid_mid` and `resid_post` are values after the normalization, and `resid_post` of a layer is
#: `resid_pre` of the next layer. (In TransformerLens' BERT both are values before the normalization.)
#: With `Architecture.norm_first` (pre-LN) both are the bare sums: the feed-forward block reads a normalized copy of
#: `resid_mid`, and only the `resid_post` of the last layer is normalized.
HOOK_POINTS = (
    HookPoint("resid_pre", "BTH", "the hidden state that enters the layer"),
    HookPoint("q", "BNTD", "each head's queries"),
    HookPoint("k", "BNTD", "each head's keys"),
    HookPoint("v", "BNTD", "each head's values"),
    HookPoint("scores", "BNTT", "attention scores: q k^T / sqrt(D), with the masks added; rows are queries"),
    HookPoint("pattern", "BNTT", "attention probabilities, the softmax of the scores (before dropout)"),
    HookPoint("z", "BNTD", "each head's mean of the values, weighted by the pattern"),
    HookPoint("attn_out", "BTH", "what attention adds: z of all heads through the output matrix"),
    HookPoint("resid_mid", "BTH", "LayerNorm(resid_pre + attn_out), which feed-forward reads; pre-LN: the bare sum"),
    HookPoint("mlp_pre", "BTF", "the feed-forward block's units before the activation"),
    HookPoint("mlp_post", "BTF", "the feed-forward block's units after the activation"),
    HookPoint("mlp_out", "BTH", "what the feed-forward block adds"),
    HookPoint("resid_post", "BTH", "LayerNorm(resid_mid + mlp_out), which leaves the layer; pre-LN: the bare sum"),
)
POINTS = {point.name: point for point in HOOK_POINTS}


def forbidden(scores: np.ndarray) -> np.ndarray:
    """Where a mask forbids a link: bool, of the shape of `scores`, attention scores or a bias that is added to them."""
    return scores < MASKED_SCORE / 2


def blocked(tokens: Iterable[int], length: int, links: Iterable[tuple[int, int]] = ()) -> np.ndarray:
    """The attention bias that hides some tokens from all tokens, and blocks single links.

    Args:
        tokens: sequence of int. Positions that no token attends to.
        length: int. T, the number of tokens.
        links: sequence of (from, to). Pairs of positions: `from` does not attend to `to`.
    Returns:
        float32 [1, 1, T, T], each entry 0 or `MASKED_SCORE`.
    """
    bias = np.zeros((1, 1, length, length), np.float32)
    bias[..., list(tokens)] = MASKED_SCORE
    for query, key in links:
        bias[..., query, key] = MASKED_SCORE
    return bias
