"""How one attention weight comes about: a query, a key, their product component by component, the softmax.

Dimension legend: L layers, N heads, T tokens, D head size.
"""

from dataclasses import dataclass

import numpy as np

from bert_tf.analysis import Analysis, Option, parse_head
from bert_tf.errors import InputError
from bert_tf.explain.attribution.target import check_position
from bert_tf.explain.models.compare import softmax
from bert_tf.results import Result, frame


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

    def neuron_view(self, tokens, position):
        """The `NeuronView` of the token at a position; tokens: the T strings of the trace."""
        return NeuronView(
            self.layer,
            self.head,
            position,
            tuple(tokens),
            self.queries,
            self.keys,
            self.scores(position),
            self.weights(position),
        )


@dataclass(frozen=True, eq=False)
class NeuronView(Result, figures={"vectors": "bert_tf.plots.attention.head_vectors:neuron_strips"}):
    """From the query of one token and the keys of all to its attention, in one head.

    Attributes:
        layer, head: from 0. position: of the token that attends. tokens: T strings, the input's.
        queries, keys: float32 [T, D], those of all tokens.
        scores: float64 [T], query times key added up, divided by the root of D. weights: float64 [T], their softmax.
    """

    layer: int
    head: int
    position: int
    tokens: tuple
    queries: np.ndarray
    keys: np.ndarray
    scores: np.ndarray
    weights: np.ndarray

    def to_frame(self):
        """A row for each token that is attended to."""
        return frame(
            {
                "position": np.arange(len(self.tokens)),
                "token": self.tokens,
                "score": self.scores,
                "weight": self.weights,
            }
        )


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


def neuron_view(bert, trace, head=(0, 0), position=1):
    """How the attention of one token in one head comes about.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`.
        head: (layer, head), from 0. position: of the token that attends.
    Returns:
        `NeuronView`.
    Raises:
        InputError: there is no such layer or head. MaskPositionError: no such position.
    """
    check_position(trace, position)
    return head_vectors(bert, trace, *head).neuron_view(trace.tokens, position)


#: Position of the token that attends.
POSITION = Option("position", "position of the token that attends", int, 1, minimum=0, metavar="P", aliases=("token",))

ANALYSIS = Analysis(
    name="neuron",
    function=neuron_view,
    summary="how the attention of one token in one head comes about: query, keys, softmax",
    source="Vaswani et al. 2017, section 3.2.1; Vig 2019, section 2.3",
    options=(Option("head", "layer and head, from 0", default="0.0", metavar="L.H", parse=parse_head), POSITION),
)
