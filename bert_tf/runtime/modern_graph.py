"""The OpenVINO graph of ModernBERT, over the graph of BERT.

B batch, T tokens, H hidden size, N heads, D head size, F intermediate size.
"""

from typing import Any

import numpy as np
import openvino.opset13 as op

from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.runtime.openvino_graph import ACTIVATIONS, Graph, Node, constant, integer, ints, real


class ModernGraph(Graph):
    """The graph of `bert_tf.layers.modern.ModernEncoderLayer`."""

    def layer(self, index: int, x: Node, bias: Node) -> Node:
        config: Any = self.config  # the settings of rotary positions and windows are not None here
        name = f"bert.encoder.layer.{index}"
        is_global = index % config.global_attn_every_n_layers == 0
        read = self.norm(f"{name}.attention.LayerNorm", x) if index else x
        qkv = self.product(read, f"{name}.attention.self.qkv.weight")
        query, key, value = map(self.split_heads, op.split(qkv, integer(2), 3).outputs())
        theta = config.global_rope_theta if is_global else config.local_rope_theta
        query, key = (self.rotate(vectors, theta) for vectors in (query, key))
        attended = self.attend(query, key, value, bias if is_global else self.once("bias", self.local_bias, bias))
        x = op.add(x, self.product(attended, f"{name}.attention.output.dense.weight"))
        units = self.product(self.norm(f"{name}.intermediate.LayerNorm", x), f"{name}.intermediate.dense.weight")
        units, gate = op.split(units, integer(2), 2).outputs()
        units = op.multiply(ACTIVATIONS[config.hidden_act](units), gate)
        x = op.add(x, self.product(units, f"{name}.output.dense.weight"))
        return self.norm("bert.encoder.LayerNorm", x) if index == config.num_hidden_layers - 1 else x

    def rotate(self, x: Node, theta: float) -> Node:
        """Rotary positions: queries or keys [B, N, T, D] -> [B, N, T, D]"""
        cos, sin = self.once(theta, self.angles, x, theta)
        first, second = op.split(x, integer(3), 2).outputs()
        turned = (
            op.subtract(op.multiply(first, cos), op.multiply(second, sin)),
            op.add(op.multiply(second, cos), op.multiply(first, sin)),
        )
        return op.concat(list(turned), 3)

    def angles(self, x: Node, theta: float) -> Node:
        """The cosines and sines [T, D / 2] of the rotary positions.

        They are rows of tables, because OpenVINO's cosine of an angle of thousands is not exact.
        """
        size = self.config.head_size
        frequencies = np.float32(1) / np.float32(theta) ** (np.arange(0, size, 2, dtype=np.float32) / np.float32(size))
        angles = np.arange(self.config.max_tokens, dtype=np.float32)[:, None] * frequencies
        length = op.gather(op.shape_of(x, "i64"), ints(2), integer(0))
        return [
            op.slice(constant(function(angles)), ints(0), length, ints(1), ints(0)) for function in (np.cos, np.sin)
        ]

    def local_bias(self, bias: Node) -> Node:
        """The additive mask [B, 1, T, T] of local attention from that of padding [B, 1, 1, T]."""
        window: Any = self.config.local_attention
        length = op.gather(op.shape_of(bias, "i64"), integer(3), integer(0))
        places = op.range(integer(0), length, integer(1), "i64")
        distance = op.abs(op.subtract(op.unsqueeze(places, ints(1)), op.unsqueeze(places, ints(0))))
        is_far = op.greater(distance, integer(window // 2))
        return op.add(bias, op.multiply(op.convert(is_far, np.float32), real(2 * MASKED_SCORE)))
