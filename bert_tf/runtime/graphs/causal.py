"""The OpenVINO graphs of the causal models, over the graph of BERT.

B batch, T tokens, P predicted positions, H hidden size (of both stacks together), N heads.
"""

import numpy as np
import openvino.opset13 as op

from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.runtime.graphs.bert import VECTORS, Graph, Node, integer, ints, real


class CausalGraph(Graph):
    """The graph of `bert_tf.layers.causal.CausalEncoderLayer`."""

    def layer(self, index: int, x: Node, bias: Node) -> Node:
        return super().layer(index, x, self.causal_bias(bias, x))

    def causal_bias(self, bias: Node, x: Node, backwards: bool = False) -> Node:
        """The additive mask [B, 1, T, T]: `bias` [B, 1, 1, T] and the mask of `bert_tf.layers.causal.causal_mask`."""
        return self.once(("causal bias", backwards), _add_causal_mask, bias, x, backwards)

    def read(self, x: Node, positions: Node | None) -> Node:
        return _before(x, positions)


class BiLMGraph(CausalGraph):
    """The graph of `bert_tf.layers.causal.BiLMEncoderLayer`."""

    def embeddings(self, token_ids: Node, segment_ids: Node) -> Node:
        x = super().embeddings(token_ids, segment_ids)
        return op.concat([x, x], -1)

    def layer(self, index: int, x: Node, bias: Node) -> Node:
        name = f"bert.encoder.layer.{self.config.layer_groups[index]}"
        outputs = [
            self.encoder_layer(f"{name}{stack}", half, self.causal_bias(bias, x, backwards))
            for stack, half, backwards in zip(self.config.stack_names, _halves(x), (False, True))
        ]
        for output in ("attentions", *VECTORS):
            if output in self.results:
                *others, left, right = self.results[output]
                self.results[output] = [*others, op.concat([left, right], 1)]
        return op.concat(outputs, -1)

    def read(self, x: Node, positions: Node | None) -> Node:
        left, right = _halves(x)
        return op.concat([_before(left, positions), _after(right, positions)], -1)


def _add_causal_mask(bias, x, backwards):
    length = op.gather(op.shape_of(x, "i64"), integer(1), integer(0))
    positions = op.range(integer(0), length, integer(1), "i64")
    queries, keys = op.unsqueeze(positions, ints(1)), op.unsqueeze(positions, ints(0))
    is_forbidden = op.greater(queries, keys) if backwards else op.greater(keys, queries)
    return op.add(bias, op.multiply(op.convert(is_forbidden, np.float32), real(2 * MASKED_SCORE)))


def _halves(x):
    return op.split(x, integer(2), 2).outputs()


def _before(x, positions):
    """The states [B, P, H] before `positions`, or before each position; zeros before the first."""
    padded = op.pad(x, ints(0, 1, 0), ints(0, 0, 0), "constant")
    if positions is None:
        return op.slice(padded, ints(0), ints(-1), ints(1), ints(1))
    return op.gather(padded, positions, integer(1), batch_dims=1)


def _after(x, positions):
    """The states [B, P, H] after `positions`, or after each position; zeros after the last."""
    padded = op.pad(x, ints(0, 0, 0), ints(0, 1, 0), "constant")
    if positions is None:
        return op.slice(padded, ints(1), ints(np.iinfo(np.int32).max), ints(1), ints(1))
    return op.gather(padded, op.add(positions, integer(1, np.int32)), integer(1), batch_dims=1)
