"""The tensors of one encoder layer, which a record lists: their names, shapes and parts. Imports no TensorFlow."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bert_tf.config import BertConfig

#: The parts of one encoder layer, in the order of BERT's forward pass.
LAYER_PARTS = ("attention", "attention_norm", "feed_forward", "feed_forward_norm")
_ATTENTION, _ATTENTION_NORM, _FEED_FORWARD, _FEED_FORWARD_NORM = LAYER_PARTS


@dataclass(frozen=True)
class LayerWeight:
    """One tensor of an encoder layer.

    Attributes:
        name: str. The canonical name, without that of the layer; a name that starts with "bert." is complete.
        shape: tuple of str. The axes in Hugging Face's files: "H" the hidden size and "F" the intermediate size of one
            stack, "S" the buckets of relative positions on each side, "3H" three times the hidden size.
        part: str. One of `LAYER_PARTS`.
        attribute: str. The dotted attribute of the variable in the Keras layer.
        layers: str. The layers that have it: "all", "first", "after the first" or "last". The first layer has the
            tensors that all layers share.
    """

    name: str
    shape: tuple[str, ...]
    part: str
    attribute: str
    layers: str = "all"

    def is_in(self, layer: int, count: int) -> bool:
        """Return whether layer number `layer`, from 0, of `count` layers has this tensor."""
        return {"all": True, "first": layer == 0, "after the first": layer > 0, "last": layer == count - 1}[self.layers]

    def sizes(self, config: "BertConfig") -> tuple[int, ...]:
        """Return the shape in a model with these settings."""
        letters = {
            "H": config.hidden_size // config.stacks,
            "F": config.intermediate_size // config.stacks,
            "S": config.position_buckets or 0,
        }
        return tuple(int(axis[:-1] or 1) * letters[axis[-1]] for axis in self.shape)


def dense(
    name: str, size_out: str, size_in: str, part: str, attribute: str, bias: bool = True
) -> tuple[LayerWeight, ...]:
    """Return the matrix [out, in] and the bias of a dense layer."""
    matrix = LayerWeight(f"{name}.weight", (size_out, size_in), part, f"{attribute}.kernel")
    return (matrix, LayerWeight(f"{name}.bias", (size_out,), part, f"{attribute}.bias")) if bias else (matrix,)


#: The tensors of BERT's encoder layer (`bert_tf.layers.encoder.EncoderLayer`).
BERT_LAYER = (
    *dense("attention.self.query", "H", "H", _ATTENTION, "attention.query"),
    *dense("attention.self.key", "H", "H", _ATTENTION, "attention.key"),
    *dense("attention.self.value", "H", "H", _ATTENTION, "attention.value"),
    *dense("attention.output.dense", "H", "H", _ATTENTION, "attention.output_dense"),
    LayerWeight("attention.output.LayerNorm.weight", ("H",), _ATTENTION_NORM, "attention_norm.gamma"),
    LayerWeight("attention.output.LayerNorm.bias", ("H",), _ATTENTION_NORM, "attention_norm.beta"),
    *dense("intermediate.dense", "F", "H", _FEED_FORWARD, "feed_forward.intermediate"),
    *dense("output.dense", "H", "F", _FEED_FORWARD, "feed_forward.output_dense"),
    LayerWeight("output.LayerNorm.weight", ("H",), _FEED_FORWARD_NORM, "feed_forward_norm.gamma"),
    LayerWeight("output.LayerNorm.bias", ("H",), _FEED_FORWARD_NORM, "feed_forward_norm.beta"),
)
