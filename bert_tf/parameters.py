"""The parameters of a model, computed from its settings: their names, shapes and parts of the model.

This module does not import TensorFlow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bert_tf.architectures.layer_weights import LAYER_PARTS

if TYPE_CHECKING:
    from bert_tf.config import BertConfig

#: The table of relative positions that all encoder layers share, [2 S, H].
POSITIONS_TABLE = "bert.encoder.rel_embeddings.weight"
#: The output table of an MLM head that does not use the token embedding table, [V, E].
OUTPUT_TABLE = "cls.predictions.decoder.weight"
#: The bias of the MLM head [V], and its name in files that repeat it beside the output table.
OUTPUT_BIAS, REPEATED_BIAS = "cls.predictions.bias", "cls.predictions.decoder.bias"


@dataclass(frozen=True)
class Parameter:
    """One trainable tensor of a model.

    Attributes:
        name: str. The name in Hugging Face's BertForPreTraining, with the `bert.` prefix.
        shape: tuple of int. The shape in Hugging Face's files: matrices of dense layers are [out, in].
        part: str. "embeddings", one of `LAYER_PARTS`, or a head.
        layer: str. The name of the Keras layer in `BertModel.bert_layers`.
        attribute: str. The dotted attribute of the variable in that layer.
    """

    name: str
    shape: tuple[int, ...]
    part: str
    layer: str
    attribute: str

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


def parameter_spec(config: BertConfig, heads: Collection[str] | None = None) -> tuple[Parameter, ...]:
    """Return all parameters of a model; weights that layers share appear once.

    Args:
        config: `BertConfig`. The settings.
        heads: collection of str or None. Some of "pooler", "mlm", "nsp", "sop", "replaced"; None for all heads that
            the architecture can have.

    Returns:
        Tuple of `Parameter`, in the order of a forward pass.
    """
    heads = config.architecture.heads if heads is None else heads
    # The parameters of a group of layers that share their weights belong to its first layer.
    groups = {group: config.layer_groups.index(group) for group in config.layer_groups}
    parameters = list(_embeddings(config))
    for group, layer in groups.items():
        for stack in config.stack_names:
            parameters += _encoder_layer(config, f"bert.encoder.layer.{group}{stack}", layer, stack)
    for head, head_parameters in _HEADS.items():
        if head in heads:
            parameters += head_parameters(config)
    return tuple(parameters)


def parameter_counts(config: BertConfig, heads: Collection[str] = ("pooler",)) -> dict[str, int]:
    """Count the parameters of each part of a model; weights that layers share count once.

    Args:
        config: `BertConfig`. The settings.
        heads: collection of str. As in `parameter_spec`.

    Returns:
        Dict with "embeddings" (with their projection), "encoder", each head and "total". The masked-LM head counts
        its transform and bias, and its output matrix unless that is the token embedding table.
    """
    return dict(_counts(config, tuple(heads)))


@functools.lru_cache(maxsize=256)  # a server asks at each press how many bytes each of its models needs
def _counts(config, heads):
    counts = {"embeddings": 0, "encoder": 0, **dict.fromkeys(heads, 0)}
    for parameter in parameter_spec(config, heads):
        counts["encoder" if parameter.part in LAYER_PARTS else parameter.part] += parameter.size
    return {**counts, "total": sum(counts.values())}


def count_in_words(count: int) -> str:
    """Return a number of parameters in words, such as "109.5 million parameters"; a small one in full."""
    return f"{count / 1e6:.1f} million parameters" if count >= 100_000 else f"{count:,} parameters"


def is_transposed(name: str) -> bool:
    """Return whether the Keras variable is the transpose of Hugging Face's tensor (the matrix of a dense layer)."""
    is_table = name.startswith("bert.embeddings.") or name in (OUTPUT_TABLE, POSITIONS_TABLE)
    return name.endswith(".weight") and not is_table and "LayerNorm" not in name


def _embeddings(config):
    has_positions, has_biases = config.architecture.has_position_table, config.architecture.has_biases
    tables = (
        ("word_embeddings", "token_table", config.vocab_size),
        ("position_embeddings", "position_table", config.max_position_embeddings * has_positions),
        ("token_type_embeddings", "segment_table", config.type_vocab_size),
    )
    part, layer, width = "embeddings", "embeddings", config.embedding_width
    for name, attribute, rows in tables:
        if rows:
            yield Parameter(f"bert.embeddings.{name}.weight", (rows, width), part, layer, attribute)
    yield from _norm("bert.embeddings.LayerNorm", width, part, layer, has_biases)
    if config.has_embedding_projection:
        yield from _dense("bert.embeddings_project", config.hidden_size, width, part, layer, "projection")


def _encoder_layer(config, name, layer, stack):
    start = f"{stack[1:]}." if stack else ""
    for weight in config.architecture.layer_weights:
        if weight.is_in(layer, config.num_hidden_layers):
            full_name = weight.name if weight.name.startswith("bert.") else f"{name}.{weight.name}"
            attribute = start + weight.attribute
            yield Parameter(full_name, weight.sizes(config), weight.part, f"layer_{layer}", attribute)


def _pooler(config):
    yield from _dense("bert.pooler.dense", config.hidden_size, config.hidden_size, "pooler", "pooler", "dense")


def _mlm(config):
    name, width = "cls.predictions", config.embedding_width
    bias = config.architecture.has_biases
    yield from _dense(f"{name}.transform.dense", width, config.hidden_size, "mlm", "mlm", "transform", bias)
    yield from _norm(f"{name}.transform.LayerNorm", width, "mlm", "mlm", bias)
    yield Parameter(OUTPUT_BIAS, (config.vocab_size,), "mlm", "mlm", "bias")
    if not config.tie_word_embeddings:
        yield Parameter(OUTPUT_TABLE, (config.vocab_size, width), "mlm", "mlm", "output_table")


def _nsp(config):
    yield from _dense("cls.seq_relationship", 2, config.hidden_size, "nsp", "nsp", "dense")


def _sop(config):
    yield from _dense("sop_classifier.classifier", 2, config.hidden_size, "sop", "sop", "dense")


def _replaced(config):
    name, width, head = "discriminator_predictions", config.hidden_size, "replaced"
    if config.architecture.replaced_head_adds_first:
        yield from _norm(f"{name}.LayerNorm", width, head, head)
    yield from _dense(f"{name}.dense", width, width, head, head, "transform")
    yield from _dense(f"{name}.dense_prediction", 1, width, head, head, "score")


_HEADS = {"pooler": _pooler, "mlm": _mlm, "nsp": _nsp, "sop": _sop, "replaced": _replaced}


def _dense(name, size_out, size_in, part, layer, attribute, bias=True):
    yield Parameter(f"{name}.weight", (size_out, size_in), part, layer, f"{attribute}.kernel")
    if bias:
        yield Parameter(f"{name}.bias", (size_out,), part, layer, f"{attribute}.bias")


def _norm(name, size, part, layer, bias=True):
    yield Parameter(f"{name}.weight", (size,), part, layer, "norm.gamma")
    if bias:
        yield Parameter(f"{name}.bias", (size,), part, layer, "norm.beta")
