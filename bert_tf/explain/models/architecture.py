"""What a model is made of, part by part: shapes, parameters, compute, and the values that pass through.

Dimension legend: T tokens, P masks, H hidden, F intermediate, N heads, D head size, L layers, V vocabulary, K labels,
C choices.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.config import BertConfig
from bert_tf.errors import InputError
from bert_tf.flops import ENCODER_PARTS, flops_by_part
from bert_tf.parameters import LAYER_PARTS, parameter_counts, parameter_spec
from bert_tf.results import Result, frame, plain

#: The values of `layer_activations` but for the layer's input.
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
    """One box of a drawing of the model.

    Attributes:
        name: "embeddings", a name out of `LAYER_PARTS`, a head's, or "task" for that of a fine-tuned model.
        title: for a reader.
        shape: of what it gives, without the batch axis: pairs of letter and number.
        parameters: of all layers together; what is shared counts once.
        flops: floating point operations of one pass over all layers, two for each product and sum of a
            matrix product; element-wise work (under one percent) is left out.
        repeats: how many times it stands in the model.
        sets: how many sets of weights these have; fewer where layers share them (ALBERT).
    """

    name: str
    title: str
    shape: tuple
    parameters: int
    flops: int
    repeats: int = 1
    sets: int = 1

    @property
    def gives(self):
        """Its shape in words, such as "T 6 x H 128"."""
        return " x ".join(f"{letter} {number:,}" for letter, number in self.shape)


@dataclass(frozen=True, eq=False)
class ModelParts(
    Result,
    figures={
        "parameters": "bert_tf.plots.models.architecture:parameters_of_parts",
        "flops": "bert_tf.plots.models.architecture:flops_of_parts",
    },
):
    """What a model is made of, for one input.

    Attributes:
        tokens: T strings. parts: its `Part`s, in the order of a forward pass.
        task_outputs: what the head of a fine-tuned model gives for the input, as `task_head_activations`; None of a
            model without a task.
    """

    tokens: tuple
    parts: tuple
    task_outputs: Optional[dict] = None

    @property
    def flops_share(self):
        """Each part's share of the operations: tuple of float."""
        total = sum(part.flops for part in self.parts)
        return tuple(part.flops / total for part in self.parts)

    def to_dict(self):
        """The fields as plain JSON values; a part's shape is a dict from letter to number, its share comes along."""
        parts = [
            {**one, "shape": dict(one["shape"]), "flops_share": round(share, 7)}
            for one, share in zip(plain(self.parts), self.flops_share)
        ]
        return {**super().to_dict(), "parts": parts}

    def to_frame(self):
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


def parts(model, tokens, masks=1, task=None):
    """The parts of the very model that is loaded, in the order of a forward pass.

    Args and unit of the operations as in `flops_by_part`; model: a `BertModel`. task: the `TaskModel` over it, or None.

    Returns:
        tuple of `Part`.
    """
    config = model.bert_config
    own = [_task_part(task, config.hidden_size, tokens)] if task else []
    return (*parts_of(config, model.bert_heads, tokens, masks), *own)


def parts_of(config, heads, tokens, masks=1):
    """The parts of a model that need not be there, by arithmetic alone.

    Args:
        config: its `BertConfig`. heads: of its pre-training. tokens, masks: as in `flops_by_part`.

    Returns:
        tuple of `Part`, in the order of a forward pass.
    """
    hidden, count, sets = config.hidden_size, config.num_hidden_layers, len(set(config.layer_groups))
    flops, counts = flops_by_part(config, tokens, masks), Counter()
    for parameter in parameter_spec(config, heads):
        counts[parameter.part] += parameter.size
    states = (("T", tokens), ("H", hidden))
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
            for name, title in zip(LAYER_PARTS, ("Self-attention", "Add & norm", "Feed-forward", "Add & norm"))
        ),
        *(
            Part(head, title, shapes[head], counts[head], flops[head])
            for head, title in _HEAD_TITLES.items()
            if head in heads
        ),
    )


def _task_part(task, hidden, tokens):
    """The head of a fine-tuned model; of several choices, for one of them."""
    kind, head = task.settings.task, task.network.head
    outputs = {"answer": 2, "choose": 1}.get(kind) or head.settings["outputs" if kind == "classify" else "labels"]
    each = (("T", tokens),) if kind in ("tag", "answer") else ()
    letter = {"tag": "labels", "answer": "ends", "choose": "scores"}.get(kind)
    shape = (*each, (letter or ("values" if task.settings.regression else "classes"), outputs))
    flops = 2 * hidden * outputs * (tokens if each else 1)
    if kind == "classify" and task.settings.pooling == "attention":
        flops += 4 * tokens * hidden  # a score for each token, and the mean by these weights
    if "activation" in task.settings.extra:
        flops += 2 * hidden * hidden  # a layer of its own on the first token
    return Part("task", _TASK_TITLES[kind], shape, _weights([head]), flops)


def task_head_activations(bert, trace):
    """What the head of a fine-tuned model makes of one input.

    Args:
        bert: a `Bert` with a task. trace: its `Trace` with hidden states.
    Returns:
        dict name -> float32 array: "logits", [K] of a classifier, [T, K] of a tagger, [] for the score of a choice
        (the text A with the text B), or "start_logits" and "end_logits" [T]; with a CRF also "transitions" [K + 2, K].
    Raises:
        ValueError: a model without a task, or a trace without hidden states.
    """
    if bert.task is None:
        raise ValueError(f"{bert.name} was not fine-tuned for a task; choose a model that was.")
    _check_states(trace)
    from keras import ops

    sequence = ops.convert_to_tensor(trace.hidden_states[-1][None], dtype="float32")
    pooled = None if trace.pooled is None else ops.convert_to_tensor(trace.pooled[None], dtype="float32")
    found = bert.task.network.head(sequence, pooled, ops.ones((1, trace.length), "int32"), training=False)
    return {name: ops.convert_to_numpy(value)[0] for name, value in found.items()}


def choice_scores(bert, context, choices):
    """The scores that a model fine-tuned to choose gives, float32 [C]: each choice is read with the context.

    Args:
        bert: a `Bert` whose task is "choose". context: text. choices: C texts, at least two.
    """
    task = bert.task
    example = task.family.example({"context": context, "choices": list(choices)}, task.settings)
    (found,) = task.outputs(task.family.encode([example], bert.tokenizer, task.settings))
    return found["logits"]


@dataclass(frozen=True, eq=False)
class LayerActivations(Result, figures={"values": "bert_tf.plots.models.architecture:layer_values"}):
    """One of the values of an input on its way through an encoder layer.

    Attributes:
        tokens: T strings. layer: index, 0 is the lowest. name: which of `ACTIVATIONS`.
        values: float32 [T, U] of U units, or [N, T, U] of N heads ("attentions": [N, T, T]).
    """

    tokens: tuple
    layer: int
    name: str
    values: np.ndarray

    def to_frame(self):
        """A row for each token and, where the values are those of heads, head; a column for each unit.

        The units of "attentions" are the tokens attended to.
        """
        heads = self.values if self.values.ndim == 3 else self.values[None]
        count, length, units = heads.shape
        head = {"head": np.repeat(np.arange(count), length)} if self.values.ndim == 3 else {}
        positions = {"position": np.tile(np.arange(length), count), "token": np.tile(self.tokens, count)}
        columns = heads.reshape(-1, units).T
        return frame({**head, **positions, **{str(unit): values for unit, values in enumerate(columns)}})


@dataclass(frozen=True)
class ArchitectureSize:
    """One of an architecture's sizes.

    Attributes:
        name: of the size. config: `BertConfig`. parameters: dict part -> count, with "total", as `parameter_counts`.
        flops: dict part -> operations, as `flops_by_part`, of the encoder and of the heads that its pre-training
            trains.
        parts: tuple of its `Part`s, as `parts_of`, with these heads.
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
        tokens: how many the input has. masks: how many of them are asked about. sizes: `ArchitectureSize`s.
    """

    tokens: int
    masks: int
    sizes: tuple

    def to_frame(self):
        """A row for each size and part; parts that only the parameters are counted of have no operations."""
        lines = [
            (size.name, part, parameters, size.flops.get(part))
            for size in self.sizes
            for part, parameters in size.parameters.items()
        ]
        return frame(dict(zip(("size", "part", "parameters", "flops"), map(list, zip(*lines)))))


def all_sizes(config, tokens, masks=1):
    """Every named size of a model's architecture, with that model's vocabulary: tuple of `ArchitectureSize`; see
    `flops_by_part`."""
    found = []
    for name in config.architecture.sizes:
        one = BertConfig.named(name, config.model_type, vocab_size=config.vocab_size)
        heads, flops = config.architecture.trained_heads(name), flops_by_part(one, tokens, masks)
        spent = {part: flops[part] for part in (*ENCODER_PARTS, *heads)}
        found.append(
            ArchitectureSize(name, one, parameter_counts(one, heads), spent, parts_of(one, heads, tokens, masks))
        )
    return tuple(found)


def _weights(layers):
    variables = {id(variable): variable for layer in layers for variable in layer.weights}
    return sum(int(np.prod(variable.shape)) for variable in variables.values())


#: What `layer_activations` gives -> the hook point that it is taken at.
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


def layer_activations(bert, trace, layer):
    """The values of one input on its way through one encoder layer.

    Args:
        bert: a `Bert`. trace: its `Trace` with hidden states. layer: index, 0 is the lowest.
    Returns:
        dict name -> float32 array: "input" [T, H]; "queries", "keys", "values" [N, T, D]; "attentions"
        [N, T, T]; "attention" [T, H] (what the block adds); "attention_norm" [T, H]; "feed_forward_wide"
        [T, F] (after the activation); "feed_forward" [T, H] (what the block adds); "feed_forward_norm"
        [T, H], the layer's output.
    Raises:
        InputError: no such layer. ValueError: a trace without hidden states.
    """
    count = bert.config.num_hidden_layers
    if not 0 <= layer < count:
        raise InputError(f"There is no layer {layer}; the model has layers 0 to {count - 1}.")
    _check_states(trace)
    return layer_activations_from_state(bert, trace.hidden_states[layer], layer)


def layer_activations_from_state(bert, state, layer):
    """As `layer_activations`, of a hidden state, float [T, H], that goes into the layer."""
    found = bert.hooked().values(layer, np.asarray(state, np.float32)[None], PASSING.values())
    return {name: found[point].numpy()[0] for name, point in PASSING.items()}


def _check_states(trace):
    if trace.hidden_states is None:
        raise ValueError("The trace has no hidden states; make it with hidden_states=True.")


def architecture(bert, trace, show="parts", layer=0):
    """What a model is made of, or one of the values of an input in one of its layers.

    Args:
        bert: a `Bert`. trace: its `Trace` with hidden states.
        show: "parts"; "sizes", every named size of its architecture; or one of `ACTIVATIONS`.
        layer: whose values these are, 0 is the lowest.
    Returns:
        `ModelParts`, `ModelSizes` or `LayerActivations`.
    Raises:
        InputError: no such layer, or nothing of the name `show`.
    """
    masks = max(len(trace.masks), 1)
    if show == "parts":
        outputs = None if bert.task is None else task_head_activations(bert, trace)
        return ModelParts(trace.tokens, parts(bert.model, trace.length, masks, bert.task), outputs)
    if show == "sizes":
        return ModelSizes(trace.length, masks, all_sizes(bert.config, trace.length, masks))
    if show not in ACTIVATIONS:
        raise InputError(f"show is parts, sizes or one of {', '.join(ACTIVATIONS)}; not {show!r:.40}.")
    return LayerActivations(trace.tokens, layer, show, layer_activations(bert, trace, layer)[show])


ANALYSIS = Analysis(
    name="architecture",
    function=architecture,
    summary="the model's parts, their sizes and work, and the values that pass them",
    source="Devlin et al. 2019; Narayanan et al. 2021, appendix (operations)",
    options=(
        Option("show", "what is shown", default="parts", choices=("parts", "sizes", *ACTIVATIONS), metavar="F"),
        Option("layer", "whose values those are, from 0", int, 0, minimum=0, metavar="L"),
    ),
)
