"""Floating-point operations of a model, computed from its settings.

Only the matrix products count, with two operations for each multiplication and addition.

Dimension legend: B batch, T tokens, P masks, H hidden size, L layers, V vocabulary.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_tf.config import BertConfig

#: The parts of `flops_by_part` that every encoder has; the other parts are heads.
ENCODER_PARTS = ("embeddings", "attention", "feed_forward")


def flops_by_part(config: BertConfig, tokens: int, masks: int = 1) -> dict[str, int]:
    """Return the floating-point operations of one forward pass of one sequence, by part.

    DeBERTa's projections of relative positions are left out: they are the same for every sequence, so the engine
    computes them when a model is loaded, and a training once for a batch.

    Args:
        config: `BertConfig`. The settings.
        tokens: int. The number T of tokens.
        masks: int. The number P of positions that the masked-LM head predicts.

    Returns:
        Dict of part -> int, for the parts of the encoder (all layers together) and for every head.
    """
    hidden, width, count = config.hidden_size, config.embedding_width, config.num_hidden_layers
    matrices: Counter[str] = Counter()  # the values of one layer's matrices, by part
    for weight in config.architecture.layer_weights:
        if len(weight.shape) == 2 and weight.attribute.endswith(".kernel"):  # a table is looked up
            matrices[weight.part] += math.prod(weight.sizes(config)) * config.stacks
    # Each further term of a score is a product with the 2T - 1 distances between T tokens, T x (2T - 1) x H.
    of_positions = (config.architecture.score_terms - 1) * 2 * tokens * (2 * tokens - 1) * hidden
    return {
        "embeddings": 2 * tokens * width * hidden if config.has_embedding_projection else 0,
        # The projections of one layer; the scores and the weighted sum take T x T x H each.
        # Local attention computes them all too, and masks those outside of the window.
        "attention": count * (2 * tokens * matrices["attention"] + 4 * tokens * tokens * hidden + of_positions),
        "feed_forward": count * 2 * tokens * matrices["feed_forward"],
        "pooler": 2 * hidden * hidden,
        "nsp": 4 * hidden,
        "sop": 4 * hidden,
        "mlm": 2 * masks * width * (hidden + config.vocab_size),
        "replaced": 2 * tokens * hidden * (hidden + 1),
    }


def forward_flops(config: BertConfig, heads: Iterable[str], batch: int, tokens: int, masks: int) -> float:
    """Return the floating-point operations of one forward pass. Padding counts, because it is computed too.

    Args:
        config: `BertConfig`. The settings.
        heads: iterable of str. The heads that are computed.
        batch: int. The batch size B.
        tokens: int. The number T of tokens.
        masks: int. The number P of positions that the masked-LM head predicts.
    """
    by_part = flops_by_part(config, tokens, masks)
    return float(batch * sum(by_part[part] for part in {*ENCODER_PARTS, *heads}))


def training_flops(
    config: BertConfig, heads: Iterable[str], batch: int, tokens: int, masks: int, frozen: int = 0
) -> float:
    """Return the floating-point operations of one update.

    The backward pass counts as two forward passes (Narayanan et al. 2021, appendix). Frozen layers have none.
    Operations that rematerialization repeats do not count. The other arguments are those of `forward_flops`.

    Args:
        frozen: int. The number of the lowest layers that are frozen, the embeddings with them; 0 freezes nothing.
    """
    by_part = flops_by_part(config, tokens, masks)
    layers = by_part["attention"] + by_part["feed_forward"]  # as much work in each
    forward_only = by_part["embeddings"] + layers * frozen / config.num_hidden_layers if frozen else 0.0
    return 3.0 * forward_flops(config, heads, batch, tokens, masks) - 2.0 * batch * forward_only
