"""Floating-point operations of a model, by arithmetic: of the matrix products alone, two for each product and sum.

Dimension legend: T tokens, P masks, H hidden, L layers, V vocabulary.
"""

#: Parts of `flops_by_part` that every encoder has; the others are heads.
ENCODER_PARTS = ("embeddings", "attention", "feed_forward")


def flops_by_part(config, tokens, masks=1):
    """Floating point operations of one pass by part, of the matrix products alone.

    Args:
        config: a `BertConfig`. tokens: T of the input. masks: P places the masked-word head is asked for.
    Returns:
        dict part -> int, for the parts of an encoder (all layers together) and for every head there is.
    """
    hidden, wide, narrow = config.hidden_size, config.intermediate_size, config.embedding_width
    count, stacks = config.num_hidden_layers, config.stacks
    return {
        "embeddings": 2 * tokens * narrow * hidden if config.has_embedding_projection else 0,
        # Four projections; scores and weighted sum are T x T x H each.
        "attention": count * (8 * tokens * hidden * hidden // stacks + 4 * tokens * tokens * hidden),
        "feed_forward": count * 4 * tokens * hidden * wide // stacks,
        "pooler": 2 * hidden * hidden,
        "nsp": 4 * hidden,
        "sop": 4 * hidden,
        "mlm": 2 * masks * narrow * (hidden + config.vocab_size),
        "replaced": 2 * tokens * hidden * (hidden + 1),
    }


def forward_flops(config, heads, batch, tokens, masks):
    """Floating-point operations of one forward pass. Padding counts, as it is computed.

    Args:
        config: `BertConfig`. heads: names of those that are asked. batch: B. tokens: T. masks: P places the
            masked-LM head is asked for.

    Returns: float.
    """
    by_part = flops_by_part(config, tokens, masks)
    return float(batch * sum(by_part[part] for part in {*ENCODER_PARTS, *heads}))


def training_flops(config, heads, batch, tokens, masks):
    """Floating-point operations of one update: the backward pass counts twice the forward one (Narayanan et al. 2021,
    appendix). What rematerialisation computes again does not count. Args and returns as `forward_flops`."""
    return 3.0 * forward_flops(config, heads, batch, tokens, masks)
