"""How far the attention of two models of one shape lies apart, head by head: before and after fine-tuning.

Dimension legend: L layers, N heads, T tokens.
"""

import numpy as np

from bert_tf.errors import NotComparable
from bert_tf.explain.attention.head_summary import attention_maps


def attention_divergence(before, after):
    """The Jensen-Shannon divergence of each head's attention, the mean over the tokens that look.

    Args:
        before, after: `Trace`s with attention maps of the same tokens by two models of one shape.
    Returns:
        float64 [L, N], in bits: 0 where a head looks at the same tokens as before, 1 where at none of them.
    Raises:
        NotComparable: other tokens, or models of other shapes. InputError: no attention maps.
    """
    one, two = attention_maps(before), attention_maps(after)
    if before.tokens != after.tokens:
        raise NotComparable("The two models cut the text into different tokens; compare models of one vocabulary.")
    if one.shape != two.shape:
        raise NotComparable(
            f"The models have {one.shape[0]} x {one.shape[1]} and {two.shape[0]} x {two.shape[1]} layers and heads; "
            "their heads do not stand for each other."
        )
    # A layer at a time: in double precision all maps of 512 tokens at once would be gigabytes.
    return np.stack([_divergences(p.astype(np.float64), q.astype(np.float64)) for p, q in zip(one, two)])


def _divergences(p, q):
    middle = (p + q) / 2
    return ((_entropy(middle) - (_entropy(p) + _entropy(q)) / 2).clip(0, 1)).mean(axis=-1)


def _entropy(p):
    return -(p * np.log2(np.maximum(p, 1e-300))).sum(axis=-1)
