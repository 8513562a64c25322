"""How one attention weight is computed: a query, a key, their product component by component, the softmax.

Dimension legend: L layers, N heads, T tokens, D head size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.analysis import Analysis, Option, parse_head
from bert_tf.errors import InputError, check_scores
from bert_tf.explain.attribution.target import check_position
from bert_tf.explain.models.compare import softmax
from bert_tf.inference.model_inputs import batch_of
from bert_tf.results import Result, frame

if TYPE_CHECKING:
    import pandas

    from bert_tf.config import BertConfig
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


@dataclass(frozen=True, eq=False)
class HeadVectors:
    """One head's queries and keys.

    Attributes:
        layer: int. From 0.
        head: int. From 0.
        queries: float32 [T, D]. The query vectors of all tokens.
        keys: float32 [T, D]. The key vectors of all tokens.
        allowed: bool [T, T] or None. Whether each token, a row, may attend to each token; None if all may.

    Example:
        >>> bert = bert_tf.load()
        >>> vectors = head_vectors(bert, bert.trace("It is a [MASK]."), layer=2, head=3)
        >>> vectors.weights(query=4)  # what token 4 attends to
    """

    layer: int
    head: int
    queries: np.ndarray
    keys: np.ndarray
    allowed: np.ndarray | None = None

    @property
    def size(self) -> int:
        """The head size, D."""
        return self.queries.shape[1]

    def products(self, query: int) -> np.ndarray:
        """The query of token `query` times every key, component by component: float32 [T, D]."""
        return self.queries[query] * self.keys

    def scores(self, query: int) -> np.ndarray:
        """The dot products of token `query` with every key, divided by the square root of D: float64 [T].

        NaN for the tokens that it may not attend to.
        """
        scores = self.products(query).sum(axis=1, dtype=np.float64) / np.sqrt(self.size)
        return scores if self.allowed is None else np.where(self.allowed[query], scores, np.nan)

    def weights(self, query: int) -> np.ndarray:
        """The attention of token `query`, the softmax of its scores: float64 [T], adds up to 1."""
        scores = self.scores(query)
        return softmax(np.where(np.isnan(scores), -np.inf, scores))

    def neuron_view(self, tokens: Iterable[str], position: int) -> NeuronView:
        """The `NeuronView` of the token at `position`; `tokens` are the T strings of the trace."""
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
    """The attention of one token in one head, with the queries and keys that it is computed from.

    Attributes:
        layer: int. From 0.
        head: int. From 0.
        position: int. Position of the token that attends.
        tokens: tuple of T strings. The tokens of the input.
        queries: float32 [T, D]. The query vectors of all tokens.
        keys: float32 [T, D]. The key vectors of all tokens.
        scores: float64 [T]. Dot products of the token's query with every key, divided by the square root of D; NaN
            where a causal or a local mask forbids the link.
        weights: float64 [T]. The softmax of the scores.
    """

    layer: int
    head: int
    position: int
    tokens: tuple[str, ...]
    queries: np.ndarray
    keys: np.ndarray
    scores: np.ndarray
    weights: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A row for each token that is attended to."""
        return frame(
            {
                "position": np.arange(len(self.tokens)),
                "token": self.tokens,
                "score": self.scores,
                "weight": self.weights,
            }
        )


def query_key_vectors(bert: Bert, trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """The queries and the keys of every head, from one forward pass.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
    Returns:
        (queries, keys), each float32 [L, N, T, D].
    Raises:
        InputError: the attention scores of the model are not the products of these vectors alone.
    """
    check_scores(bert.config, bert.name, "The neuron view")
    batch = batch_of(trace.token_ids, trace.segments)
    outputs = bert.runtime.run(batch, ("queries", "keys"))
    queries, keys = (np.stack([layer[0] for layer in outputs[name]]) for name in ("queries", "keys"))
    return queries, keys


def allowed_links(config: BertConfig, length: int, layer: int) -> np.ndarray:
    """The tokens that each token may attend to in a layer: all of them, unless its mask is causal or local.

    Args:
        config: BertConfig. The settings of the model.
        length: int. T, the number of tokens.
        layer: int. From 0.
    Returns:
        bool [N, T, T]; rows are the tokens that attend.
    """
    window = config.attention_window(layer)
    distances = np.arange(length) - np.arange(length)[:, None]
    near = np.abs(distances) <= (length if window is None else window // 2)
    of_stacks = {
        "bidirectional": (near,),
        "left_to_right": (distances <= 0,),
        "two_one_way": (distances <= 0, distances >= 0),
    }[config.architecture.attention_direction]
    return np.repeat(of_stacks, config.num_attention_heads // len(of_stacks), axis=0)


def check_head(bert: Bert, layer: int, head: int) -> None:
    """Raise InputError unless the model has this head; layer and head count from 0."""
    layers, heads = bert.config.num_hidden_layers, bert.config.num_attention_heads
    if not (0 <= layer < layers and 0 <= head < heads):
        raise InputError(
            f"There is no head {head} in layer {layer}: this model has {layers} layers of {heads} heads, "
            "both numbered from 0."
        )


def head_vectors(
    bert: Bert, trace: Trace, layer: int, head: int, vectors: tuple[np.ndarray, np.ndarray] | None = None
) -> HeadVectors:
    """The queries and keys of one head (Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1).

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        layer: int. From 0.
        head: int. From 0.
        vectors: (queries, keys) or None. The result of `query_key_vectors` for the trace; None runs the model once.
    Returns:
        `HeadVectors`.
    Raises:
        InputError: there is no such layer or head, or as `query_key_vectors`.
    """
    check_head(bert, layer, head)
    queries, keys = vectors or query_key_vectors(bert, trace)
    allowed = allowed_links(bert.config, trace.length, layer)[head]
    return HeadVectors(layer, head, queries[layer, head], keys[layer, head], allowed)


def neuron_view(
    bert: Bert, trace: Trace, head: tuple[int, int] = (0, 0), position: int = 1, vectors: HeadVectors | None = None
) -> NeuronView:
    """How the attention of one token in one head is computed.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace.
        head: (int, int). Layer and head, both from 0.
        position: int. Position of the token that attends.
        vectors: HeadVectors or None. The `head_vectors` of the head; None runs the model once.
    Returns:
        `NeuronView`.
    Raises:
        InputError: there is no such layer or head.
        MaskPositionError: there is no such position.
    """
    check_position(trace, position)
    vectors = vectors or head_vectors(bert, trace, *head)
    return vectors.neuron_view(trace.tokens, position)


#: The option for the position of the token that attends.
POSITION = Option("position", "position of the token that attends", int, 1, minimum=0, metavar="P", aliases=("token",))

ANALYSIS = Analysis(
    name="neuron",
    function=neuron_view,
    summary="how the attention of one token in one head is computed: query, keys, softmax",
    source="Vaswani et al. 2017, section 3.2.1; Vig 2019, section 2.3",
    options=(Option("head", "layer and head, from 0", default="0.0", metavar="L.H", parse=parse_head), POSITION),
)
