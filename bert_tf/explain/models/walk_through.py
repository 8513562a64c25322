"""One input's way through a model: the values of every step, from the tokens to the predictions.

Dimension legend: L layers, T tokens, N heads, D head size, H hidden, E embedding size, F intermediate, P positions,
K labels, S parts of the embeddings. Sources: Devlin et al. 2019, figure 2; Vaswani et al. 2017, section 3; Xiong et al.
2020, figure 1 (pre-norm).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from bert_tf.errors import check_layer
from bert_tf.explain.attribution.target import class_prediction
from bert_tf.explain.models.compare import softmax
from bert_tf.explain.representations.input_embeddings import embedding_parts
from bert_tf.explain.representations.logit_lens import LogitLens, logit_lens
from bert_tf.inference.trace import hidden_states_of
from bert_tf.layers.hook_points import forbidden
from bert_tf.results import Result
from bert_tf.runtime.numpy_ops import ACTIVATIONS, dense, layer_norm, read_by_feed_forward, read_by_mlm

if TYPE_CHECKING:
    from bert_tf.config import BertConfig
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.inference.words import WordSpan

#: The steps that every model has, in their order. A head's step follows them where the model has the head.
ENCODER_STEPS = ("pieces", "embeddings", "head", "heads", "attention_norm", "feed_forward", "layers")
_CURVE = np.linspace(-4, 4, 65, dtype=np.float32)
#: Hook point -> field of `WalkThrough`.
_LAYER_FIELDS = {
    "q": "queries",
    "k": "keys",
    "v": "values",
    "scores": "scores",
    "pattern": "weights",
    "z": "head_outputs",
    "attn_out": "attention_output",
    "resid_mid": "attention_norm",
    "mlp_pre": "feed_forward_before",
    "mlp_post": "feed_forward_after",
    "mlp_out": "feed_forward_output",
    "resid_post": "feed_forward_norm",
}


def _array():
    return field(metadata={"export": "arrays"})


@dataclass(frozen=True)
class TaskScores:
    """What the head of a fine-tuned model computes from the last hidden states.

    Attributes:
        task: str. "classify", "tag", "answer" or "choose".
        labels: tuple of K str. The classes, the labels of a token, ("begins", "ends") of an answer, or ("value",) or
            ("score",) for a number without labels.
        values: float64 [K], or [T, K] with a row for each token. Probabilities: of a text's class or of a token's
            label; of an answer's ends over all tokens. A number without labels as it is.
        is_probability: bool. Whether `values` holds probabilities.
    """

    task: str
    labels: tuple
    values: np.ndarray
    is_probability: bool


@dataclass(frozen=True, eq=False)
class WalkThrough(Result):
    """The values of one input at every step through a model; those inside the layers of one layer.

    Attributes:
        model: str. The name of the model.
        config: BertConfig. Its settings.
        steps: tuple of str. `ENCODER_STEPS`, then those of "nsp", "sop", "replaced", "task" and "mlm" that it has.
        tokens: tuple of T str. token_ids: int32 [T]. masks: tuple of int. segments: int32 [T].
        words: tuple of WordSpan. The words of the texts, with the positions of their tokens.
        layer: int. The layer of the values inside a layer, from 0.
        part_names: tuple of S str. Some of "token", "segment", "position".
        parts: float32 [S, T, E]. The vectors that are added.
        embedding_sum, embedding_norm: float32 [T, E]. Their sum, before and after the layer normalization.
        hidden_states: float32 [L+1, T, H]. Index 0 has the embeddings.
        queries, keys, values: float32 [N, T, D].
        scores: float32 [N, T, T]. Scaled dot products; NaN where a causal or a local mask forbids the link.
        weights: float32 [N, T, T]. The softmax of the scores; rows are queries.
        head_outputs: float32 [N, T, D]. The sums of the values with these weights.
        attention_output: float32 [T, H]. The heads' outputs, side by side, through the output projection.
        attention_norm: float32 [T, H]. The normalised sum of the layer's input and `attention_output`: what the
            feed-forward block reads.
        feed_forward_before, feed_forward_after: float32 [T, F]. Before and after the activation function; in a gated
            block the latter are multiplied by their gates.
        feed_forward_output, feed_forward_norm: float32 [T, H]. What the block adds; the layer's output. The block adds
            to `attention_norm`, and the sum is normalised; with `Architecture.norm_first` it adds to the sum before the
            normalisation, and only the last layer normalises its output.
        activation: float32 [2, C]. The curve of the activation function: C inputs and their outputs.
        positions: tuple of P int. The positions with predictions, by default all.
        lens: LogitLens or None. The MLM head's predictions at these positions from every hidden state.
        read: float32 [P, H] or None. The vectors that the MLM head reads for these positions.
        transformed: float32 [P, E] or None. The same after the head's dense layer, activation and normalization.
        pooled: float32 [H] or None. The pooled output.
        pair: NextSentence, SentenceOrder or None. None without such a head or without a second text.
        replaced: float32 [T] or None. The probabilities that a token was replaced.
        task: TaskScores or None. The output of a fine-tuned model's head.
    """

    model: str
    config: BertConfig
    steps: tuple
    tokens: tuple
    token_ids: np.ndarray
    masks: tuple
    segments: np.ndarray
    words: tuple[WordSpan, ...]
    layer: int
    part_names: tuple
    parts: np.ndarray = _array()
    embedding_sum: np.ndarray = _array()
    embedding_norm: np.ndarray = _array()
    hidden_states: np.ndarray = _array()
    queries: np.ndarray = _array()
    keys: np.ndarray = _array()
    values: np.ndarray = _array()
    scores: np.ndarray = _array()
    weights: np.ndarray = _array()
    head_outputs: np.ndarray = _array()
    attention_output: np.ndarray = _array()
    attention_norm: np.ndarray = _array()
    feed_forward_before: np.ndarray = _array()
    feed_forward_after: np.ndarray = _array()
    feed_forward_output: np.ndarray = _array()
    feed_forward_norm: np.ndarray = _array()
    activation: np.ndarray = _array()
    positions: tuple = ()
    lens: Optional[LogitLens] = None
    read: Optional[np.ndarray] = field(default=None, metadata={"export": "arrays"})
    transformed: Optional[np.ndarray] = field(default=None, metadata={"export": "arrays"})
    pooled: Optional[np.ndarray] = field(default=None, metadata={"export": "arrays"})
    pair: Any = None
    replaced: Optional[np.ndarray] = None
    task: Optional[TaskScores] = None


def walk_through(bert: Bert, trace: Trace, layer: int = 0, positions: Iterable[int] | None = None) -> WalkThrough:
    """One input's way through a model, from a single forward pass.

    The values inside the layer are computed again from the trace's hidden state that enters it.

    Args:
        bert: Bert. The model that made the trace.
        trace: Trace. A trace with hidden states.
        layer: int. The layer whose inside is shown, from 0.
        positions: sequence of int. The positions with predictions of the MLM head; None for all.
    Returns:
        `WalkThrough`.
    Raises:
        InputError: there is no such layer, or the trace has no hidden states.
        MaskPositionError: a position does not exist.
    """
    config, weights = bert.config, bert.weights
    states = hidden_states_of(trace)
    check_layer(layer, config.num_hidden_layers)
    places = tuple(range(trace.length)) if positions is None else tuple(int(position) for position in positions)
    embeddings = embedding_parts(bert, trace)
    predictions: dict[str, Any] = {}
    if "mlm" in bert.heads:
        lens = logit_lens(bert, trace, places)
        read = read_by_mlm(bert.weights, states[-1])[list(places)]
        name = "cls.predictions.transform"
        transformed = layer_norm(
            weights, f"{name}.LayerNorm", ACTIVATIONS[config.mlm_act](dense(weights, f"{name}.dense", read))
        )
        predictions = {"lens": lens, "read": read, "transformed": transformed}
    inside = _layer_values(bert, states[layer], layer)
    return WalkThrough(
        model=bert.name,
        config=config,
        steps=steps_of(bert),
        tokens=trace.tokens,
        token_ids=trace.token_ids,
        masks=trace.masks,
        segments=trace.segments,
        words=trace.words(),
        layer=layer,
        part_names=embeddings.parts,
        parts=embeddings.vectors,
        embedding_sum=embeddings.total,
        embedding_norm=layer_norm(weights, "bert.embeddings.LayerNorm", embeddings.total),
        hidden_states=states,
        activation=np.stack([_CURVE, ACTIVATIONS[config.hidden_act](_CURVE)]),
        positions=places,
        pooled=trace.pooled,
        pair=trace.nsp or trace.sop,
        replaced=trace.replaced,
        task=_task_scores(bert, trace) if _has_task_head(bert) else None,
        **predictions,
        **{name: inside[point] for point, name in _LAYER_FIELDS.items()},
    )


def steps_of(bert: Bert) -> tuple[str, ...]:
    """The steps of a model: `ENCODER_STEPS`, then one for each head that gives predictions, a fine-tuned one last."""
    heads = [head for head in ("nsp", "sop", "replaced", "mlm") if head in bert.heads]
    return (*ENCODER_STEPS, *heads, *(["task"] if _has_task_head(bert) else []))


def _layer_values(bert, state, layer):
    """The values inside a layer by hook point, without the batch axis; NaN for the scores of forbidden links."""
    inside = bert.steps().values(layer, state[None], _LAYER_FIELDS)
    values = {name: np.array(value)[0] for name, value in inside.items()}
    values["scores"][forbidden(values["scores"])] = np.nan
    values["resid_mid"] = read_by_feed_forward(bert.weights, layer, values["resid_mid"])
    return values


def _has_task_head(bert):
    """Whether the model is fine-tuned with a head; a model of sentence similarity compares hidden states."""
    return bert.task is not None and bert.task.task_type.has_weights


def _task_scores(bert, trace):
    """The `TaskScores` of a fine-tuned model."""
    settings = bert.task.settings
    sequence = trace.hidden_states[-1][None]
    if settings.task == "classify":
        prediction = class_prediction(settings, bert.task.class_scores(sequence)[0])
        values = np.array(list(prediction.values()))
        return TaskScores("classify", tuple(prediction), values, not settings.regression)
    outputs = bert.task.head_outputs(sequence)
    if settings.task == "tag":
        return TaskScores("tag", settings.labels, softmax(outputs["logits"][0].astype(np.float64)), True)
    if settings.task == "answer":
        ends = [softmax(outputs[name][0].astype(np.float64)) for name in ("start_logits", "end_logits")]
        return TaskScores("answer", ("begins", "ends"), np.stack(ends, axis=1), True)
    return TaskScores("choose", ("score",), outputs["logits"].astype(np.float64).reshape(1), False)
