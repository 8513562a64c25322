"""What a model is made of, part by part: shapes, parameters, compute, and the values that pass through.

Dimension legend: T tokens, P masks, H hidden, F intermediate, N heads, D head size, L layers, V vocabulary, K labels,
C choices.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from bert_tf.config import BertConfig
from bert_tf.flops import ENCODER_PARTS, flops_by_part
from bert_tf.parameters import LAYER_PARTS, parameter_counts, parameter_spec

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
        ValueError: no such layer, or a trace without hidden states.
    """
    count = bert.config.num_hidden_layers
    if not 0 <= layer < count:
        raise ValueError(f"There is no layer {layer}; the model has layers 0 to {count - 1}.")
    _check_states(trace)
    return layer_activations_from_state(bert, trace.hidden_states[layer], layer)


def layer_activations_from_state(bert, state, layer):
    """As `layer_activations`, of a hidden state, float [T, H], that goes into the layer."""
    found = bert.hooked().values(layer, np.asarray(state, np.float32)[None], PASSING.values())
    return {name: found[point].numpy()[0] for name, point in PASSING.items()}


def _check_states(trace):
    if trace.hidden_states is None:
        raise ValueError("The trace has no hidden states; make it with hidden_states=True.")
