"""The parts of a model: shapes, parameters and operations, and the activations of an input.

Dimension legend: T tokens, P masks, H hidden, F intermediate, N heads, D head size, L layers, V vocabulary, K labels,
C choices.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.config import BertConfig
from bert_tf.errors import InputError, check_layer
from bert_tf.flops import ENCODER_PARTS, flops_by_part
from bert_tf.inference.trace import hidden_states_of
from bert_tf.parameters import LAYER_PARTS, parameter_counts, parameter_spec
from bert_tf.results import Result, frame, plain
from bert_tf.runtime.numpy_ops import read_by_feed_forward

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import pandas

    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace
    from bert_tf.models import BertModel


#: The names of `layer_activations` without "input".
ACTIVATIONS = (
    "queries",
    "keys",
    "values",
    "attentions",
    "attention",
    "attention_norm",
    "feed_forward_wide",
    "feed_forward",
    "feed_forward_norm",
)
_HEAD_TITLES = {
    "pooler": "Pooler",
    "mlm": "Masked word head",
    "nsp": "Next sentence head",
    "sop": "Sentence order head",
    "replaced": "Replaced token head",
}
_TASK_TITLES = {"classify": "Class head", "tag": "Word label head", "answer": "Answer head", "choose": "Choice head"}


@dataclass(frozen=True)
class Part:
    """One part of a model, a box in its drawing.

    Attributes:
        name: str. "embeddings", a name in `LAYER_PARTS`, a pre-training head's name, or "task" for the head of a
            fine-tuned model.
        title: str. The name on screen.
        shape: tuple of pairs (letter, number). The shape of the output, without the batch axis.
        parameters: int. The parameters of all layers together; shared weights count once.
        flops: int. Floating point operations of one pass over all layers, two for each product and sum of a
            matrix product; element-wise operations (under one percent) are left out.
        repeats: int. The number of layers that have this part.
        sets: int. The number of sets of weights; less than `repeats` where layers share them (ALBERT).
    """

    name: str
    title: str
    shape: tuple
    parameters: int
    flops: int
    repeats: int = 1
    sets: int = 1

    @property
    def gives(self) -> str:
        """The shape of the output as text, such as "T 6 x H 128"."""
        return " x ".join(f"{letter} {number:,}" for letter, number in self.shape)


@dataclass(frozen=True, eq=False)
class ModelParts(
    Result,
    figures={
        "parameters": "bert_tf.plots.models.architecture:parameters_of_parts",
        "flops": "bert_tf.plots.models.architecture:flops_of_parts",
    },
):
    """The parts of a model, for one input.

    Attributes:
        tokens: tuple of T str.
        parts: tuple of `Part`, in the order of a forward pass.
        task_outputs: dict or None. The outputs of a fine-tuned model's head for the input, as `task_head_activations`;
            None for a model without a task.
    """

    tokens: tuple
    parts: tuple
    task_outputs: Optional[dict] = None

    @property
    def flops_share(self) -> tuple[float, ...]:
        """The share of each part in the operations: tuple of float."""
        total = sum(part.flops for part in self.parts)
        return tuple(part.flops / total for part in self.parts)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values; each part has "flops_share", and its shape is a dict letter -> number."""
        parts = [
            {**part, "shape": dict(part["shape"]), "flops_share": round(share, 7)}
            for part, share in zip(plain(self.parts), self.flops_share)
        ]
        return {**super().to_dict(), "parts": parts}

    def to_frame(self) -> pandas.DataFrame:
        """A row for each part."""
        parts = self.parts
        return frame(
            {
                "part": [part.name for part in parts],
                "title": [part.title for part in parts],
                "repeats": [part.repeats for part in parts],
                "sets": [part.sets for part in parts],
                "shape": [part.gives for part in parts],
                "parameters": [part.parameters for part in parts],
                "flops": [part.flops for part in parts],
                "flops_share": self.flops_share,
            }
        )


def parts(model: BertModel, tokens: int, masks: int = 1, task: TaskModel | None = None) -> tuple[Part, ...]:
    """The parts of a Keras model; arguments and result as of `parts_of`."""
    return parts_of(model.bert_config, model.bert_heads, tokens, masks, task)


def parts_of(
    config: BertConfig, heads: Collection[str], tokens: int, masks: int = 1, task: TaskModel | None = None
) -> tuple[Part, ...]:
    """The parts of a model, computed from its configuration without building it.

    Args:
        config: `BertConfig`.
        heads: sequence of str. The pre-training heads.
        tokens, masks: int. As in `flops_by_part`, which documents how operations are counted.
        task: `TaskModel` or None. The fine-tuned task of the model.

    Returns:
        tuple of `Part`, in the order of a forward pass.
    """
    hidden, count, sets = config.hidden_size, config.num_hidden_layers, len(set(config.layer_groups))
    flops = flops_by_part(config, tokens, masks)
    counts: Counter[str] = Counter()
    for parameter in parameter_spec(config, heads):
        counts[parameter.part] += parameter.size
    states = (("T", tokens), ("H", hidden))
    last = "Add" if config.architecture.norm_first else "Add & norm"
    shapes = {
        "pooler": (("H", hidden),),
        "nsp": (("classes", 2),),
        "sop": (("classes", 2),),
        "mlm": (("P", masks), ("V", config.vocab_size)),
        "replaced": (("T", tokens),),
    }
    return (
        Part("embeddings", "Embeddings", states, counts["embeddings"], flops["embeddings"]),
        *(
            Part(name, title, states, counts[name], flops.get(name, 0), count, sets)
            for name, title in zip(LAYER_PARTS, ("Self-attention", "Add & norm", "Feed-forward", last))
        ),
        *(
            Part(head, title, shapes[head], counts[head], flops[head])
            for head, title in _HEAD_TITLES.items()
            if head in heads
        ),
        *([_task_part(task, config, tokens)] if task and task.task_type.has_weights else ()),
    )


def _task_part(task, config, tokens):
    """The head of a fine-tuned model; that of multiple choice for one choice."""
    settings, hidden = task.settings, config.hidden_size
    kind, labels = settings.task, 1 if settings.regression else len(settings.labels)
    outputs = {"answer": 2, "choose": 1}.get(kind, labels)
    token_axis = (("T", tokens),) if kind in ("tag", "answer") else ()
    letter = {"tag": "labels", "answer": "ends", "choose": "scores"}.get(kind)
    shape = (*token_axis, (letter or ("values" if settings.regression else "classes"), outputs))
    flops = 2 * hidden * outputs * (tokens if token_axis else 1)
    if kind == "classify" and settings.pooling == "attention":
        flops += 4 * tokens * hidden  # a score for each token, and the weighted mean
    if task.task_type.prediction(config):
        flops += 2 * hidden * hidden * (tokens if token_axis else 1)  # the dense layer of the prediction head
    elif "activation" in settings.extra:
        flops += 2 * hidden * hidden  # an additional dense layer on the first token
    parameters = sum(map(math.prod, task.task_type.head_shapes(settings, config).values()))
    return Part("task", _TASK_TITLES[kind], shape, parameters, flops)


def task_head_activations(bert: Bert, trace: Trace) -> dict[str, np.ndarray]:
    """The outputs of a fine-tuned model's head for one input.

    Args:
        bert: `Bert`. A model with a task.
        trace: `Trace` of `bert` with hidden states.
    Returns:
        dict str -> float32 array: "logits" [K] of a classifier, [T, K] of a token classifier, [] of a choice (text A
        with text B); "start_logits" and "end_logits" [T] of question answering; with a CRF also "transitions"
        [K + 2, K].
    Raises:
        ValueError: a model without a task, or a trace without hidden states.
    """
    if bert.task is None:
        raise ValueError(f"{bert.name} was not fine-tuned for a task; choose a model that was.")
    hidden_states = hidden_states_of(trace)
    pooled = None if trace.pooled is None else trace.pooled[None]
    outputs = bert.task.raw_outputs(hidden_states[-1][None], pooled, np.ones((1, trace.length), np.int32))
    return {name: value[0] for name, value in outputs.items()}


def choice_scores(bert: Bert, context: str, choices: Sequence[str]) -> np.ndarray:
    """The scores of a model fine-tuned for multiple choice; each choice is read with the context.

    Args:
        bert: `Bert`. Its task is "choose".
        context: str.
        choices: sequence of C str, at least two.
    Returns:
        float32 [C].
    """
    task = bert.task
    assert task is not None, "only a model fine-tuned for multiple choice scores choices"
    example = task.task_type.example({"context": context, "choices": list(choices)}, task.settings)
    (outputs,) = task.outputs(task.task_type.encode([example], bert.tokenizer, task.settings))
    return outputs["logits"]


@dataclass(frozen=True, eq=False)
class LayerActivations(Result, figures={"values": "bert_tf.plots.models.architecture:layer_values"}):
    """One of the activations of an encoder layer for one input.

    Attributes:
        tokens: tuple of T str.
        layer: int. The layer, from 0, the lowest.
        name: str. One of `ACTIVATIONS`.
        values: float32 [T, U] for U units, or [N, T, U] for N heads ("attentions": [N, T, T]).
    """

    tokens: tuple
    layer: int
    name: str
    values: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A row for each token (and each head, where the values have heads); a column for each unit.

        The units of "attentions" are the tokens attended to.
        """
        heads = self.values if self.values.ndim == 3 else self.values[None]
        count, length, units = heads.shape
        head = {"head": np.repeat(np.arange(count), length)} if self.values.ndim == 3 else {}
        positions = {
            "position": np.tile(np.arange(length), count),
            "token": np.tile(np.array(self.tokens, object), count),
        }
        columns = heads.reshape(-1, units).T
        return frame({**head, **positions, **{str(unit): values for unit, values in enumerate(columns)}})


@dataclass(frozen=True)
class ArchitectureSize:
    """One named size of an architecture.

    Attributes:
        name: str. The name of the size.
        config: `BertConfig`.
        parameters: dict str -> int. Part -> number of parameters, with "total", as `parameter_counts`.
        flops: dict str -> int. Part -> operations, as `flops_by_part`, for the encoder and the pre-training heads of
            the size.
        parts: tuple of `Part`, as `parts_of`, with these heads.
    """

    name: str
    config: BertConfig
    parameters: dict
    flops: dict
    parts: tuple


@dataclass(frozen=True)
class ModelSizes(Result, figures={"parameters": "bert_tf.plots.models.architecture:parameters_of_sizes"}):
    """Every named size of a model's architecture, with the model's vocabulary.

    Attributes:
        tokens: int. The number of tokens of the input.
        masks: int. The number of masks among them.
        sizes: tuple of `ArchitectureSize`.
    """

    tokens: int
    masks: int
    sizes: tuple

    def to_frame(self) -> pandas.DataFrame:
        """A row for each size and part; the operations are empty where only the parameters are counted."""
        rows = [
            (size.name, part, parameters, size.flops.get(part))
            for size in self.sizes
            for part, parameters in size.parameters.items()
        ]
        return frame(dict(zip(("size", "part", "parameters", "flops"), map(list, zip(*rows)))))


def all_sizes(config: BertConfig, tokens: int, masks: int = 1) -> tuple[ArchitectureSize, ...]:
    """Every named size of a model's architecture, with the model's vocabulary.

    Args:
        config: `BertConfig`. The configuration of the model.
        tokens, masks: int. As in `flops_by_part`.
    Returns:
        tuple of `ArchitectureSize`.
    """
    sizes = []
    for name in config.architecture.sizes:
        vocabulary = {"vocab_size": config.vocab_size, "pad_token_id": config.pad_token_id}
        named = BertConfig.named(name, config.model_type, **vocabulary)
        heads, all_flops = config.architecture.trained_heads(name), flops_by_part(named, tokens, masks)
        flops = {part: all_flops[part] for part in (*ENCODER_PARTS, *heads)}
        sizes.append(
            ArchitectureSize(name, named, parameter_counts(named, heads), flops, parts_of(named, heads, tokens, masks))
        )
    return tuple(sizes)


#: Name in `layer_activations` -> hook point.
PASSING = {
    "input": "resid_pre",
    "queries": "q",
    "keys": "k",
    "values": "v",
    "attentions": "pattern",
    "attention": "attn_out",
    "attention_norm": "resid_mid",
    "feed_forward_wide": "mlp_post",
    "feed_forward": "mlp_out",
    "feed_forward_norm": "resid_post",
}


def layer_activations(bert: Bert, trace: Trace, layer: int) -> dict[str, np.ndarray]:
    """The activations of one encoder layer for one input.

    Args:
        bert: `Bert`. The model.
        trace: `Trace` of `bert` with hidden states.
        layer: int. The layer, from 0, the lowest.
    Returns:
        dict str -> float32 array: "input" [T, H]; "queries", "keys", "values" [N, T, D]; "attentions"
        [N, T, T]; "attention" [T, H] (the output of the block, before the residual sum); "attention_norm" [T, H] (the
        normalised sum, which the feed-forward block reads); "feed_forward_wide" [T, F] (after the activation function
        and, in a gated block, the gates); "feed_forward" [T, H] (the output of the block, before the residual sum);
        "feed_forward_norm" [T, H], the layer's output.
    Raises:
        InputError: there is no such layer, or the trace has no hidden states.
    """
    check_layer(layer, bert.config.num_hidden_layers)
    return layer_activations_from_state(bert, hidden_states_of(trace)[layer], layer)


def layer_activations_from_state(bert: Bert, state: np.ndarray, layer: int) -> dict[str, np.ndarray]:
    """The activations of one encoder layer, as `layer_activations`, for its input `state`, float [T, H]."""
    values = bert.steps().values(layer, np.asarray(state, np.float32)[None], PASSING.values())
    passing = {name: np.asarray(values[point])[0] for name, point in PASSING.items()}
    return {**passing, "attention_norm": read_by_feed_forward(bert.weights, layer, passing["attention_norm"])}


def architecture(
    bert: Bert, trace: Trace, show: str = "parts", layer: int = 0
) -> ModelParts | ModelSizes | LayerActivations:
    """The parts of a model, the sizes of its architecture, or one activation of a layer for an input.

    Args:
        bert: `Bert`. The model.
        trace: `Trace` of `bert` with hidden states.
        show: str. "parts"; "sizes", every named size of the architecture; or one of `ACTIVATIONS`.
        layer: int. The layer of the activation, from 0, the lowest.
    Returns:
        `ModelParts`, `ModelSizes` or `LayerActivations`.
    Raises:
        InputError: an unknown layer or an unknown `show`.
    """
    masks = max(len(trace.masks), 1)
    if show == "parts":
        outputs = (
            None if bert.task is None or not bert.task.task_type.has_weights else task_head_activations(bert, trace)
        )
        return ModelParts(trace.tokens, parts_of(bert.config, bert.heads, trace.length, masks, bert.task), outputs)
    if show == "sizes":
        return ModelSizes(trace.length, masks, all_sizes(bert.config, trace.length, masks))
    if show not in ACTIVATIONS:
        raise InputError(f"show is parts, sizes or one of {', '.join(ACTIVATIONS)}; not {show!r:.40}.")
    return LayerActivations(trace.tokens, layer, show, layer_activations(bert, trace, layer)[show])


ANALYSIS = Analysis(
    name="architecture",
    function=architecture,
    summary="the model's parts, their sizes and operations, and the activations of a layer",
    source="Devlin et al. 2019; Narayanan et al. 2021, appendix (operations)",
    options=(
        Option(
            "show",
            "parts, sizes, or an activation of a layer",
            default="parts",
            choices=("parts", "sizes", *ACTIVATIONS),
            metavar="F",
        ),
        Option("layer", "layer of the activation, from 0", int, 0, minimum=0, metavar="L"),
    ),
)
