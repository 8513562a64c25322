"""How one attention weight comes about: a query, a key, their product component by component, the softmax.

Dimension legend: L layers, N heads, T tokens, D head size.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.errors import InputError
from bert_tf.explain.models.compare import softmax


@dataclass(frozen=True, eq=False)
class HeadVectors:
    """One head's queries and keys.

    Attributes:
        layer, head: from 0.
        queries, keys: float32 [T, D].
    """

    layer: int
    head: int
    queries: np.ndarray
    keys: np.ndarray

    @property
    def size(self):
        """Components of a vector, D."""
        return self.queries.shape[1]

    def products(self, query):
        """Query x key, component by component, of token `query` with every token: float32 [T, D]."""
        return self.queries[query] * self.keys

    def scores(self, query):
        """The products added up and divided by the root of D: what the softmax takes, float64 [T]."""
        return self.products(query).sum(axis=1, dtype=np.float64) / np.sqrt(self.size)

    def weights(self, query):
        """The attention of token `query`: float64 [T], adds up to 1."""
        return softmax(self.scores(query))


def query_key_vectors(bert, trace):
    """The queries and the keys of every head, two float32 [L, N, T, D]; one forward pass.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`.
    """
    batch = {
        "token_ids": trace.token_ids[None],
        "segment_ids": trace.segments[None],
        "padding_mask": np.ones((1, trace.length), np.int32),
    }
    found = bert.runtime.run(batch, ("queries", "keys"))
    return tuple(np.stack([layer[0] for layer in found[name]]) for name in ("queries", "keys"))


def check_head(bert, layer, head):
    """Refuse, with an `InputError`, a head that a model does not have; layer and head are numbered from 0."""
    layers, heads = bert.config.num_hidden_layers, bert.config.num_attention_heads
    if not (0 <= layer < layers and 0 <= head < heads):
        raise InputError(
            f"There is no head {head} in layer {layer}: this model has {layers} layers of {heads} heads, "
            "both numbered from 0."
        )


def head_vectors(bert, trace, layer, head, vectors=None):
    """The queries and keys of one head (Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1).

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. layer, head: from 0.
        vectors: what `query_key_vectors` gave for the trace; None runs the model once.
    Returns:
        `HeadVectors`.
    Raises:
        InputError: there is no such layer or head.
    """
    check_head(bert, layer, head)
    queries, keys = vectors or query_key_vectors(bert, trace)
    return HeadVectors(layer, head, queries[layer, head], keys[layer, head])
