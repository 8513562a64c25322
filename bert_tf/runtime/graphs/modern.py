"""The OpenVINO graph of ModernBERT, over the graph of BERT.

In the graph "blocks" the local layers compute no score of tokens that are out of reach: the queries are cut into
blocks, and each block meets its own keys and those of half a window before and after it.

B batch, T tokens, H hidden size, N heads, D head size, F intermediate size; C queries of a block, W window.
"""

from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op

from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.runtime.graphs.bert import ACTIVATIONS, Graph, Node, constant, integer, ints, real

#: The queries of a block, in windows.
_BLOCK = 1


class ModernGraph(Graph):
    """The graph of `bert_tf.layers.modern.ModernEncoderLayer`."""

    @staticmethod
    def layer_structure(config: Any, index: int) -> tuple[bool, bool, bool]:
        """Whether the layer's tokens attend to all tokens, and whether it is the first and the last layer."""
        return config.attention_window(index) is None, index == 0, index == config.num_hidden_layers - 1

    def layer(self, index: int, x: Node, bias: Node) -> Node:
        config: Any = self.config  # the settings of rotary positions and windows are not None here
        name, (is_global, is_first, is_last) = f"bert.encoder.layer.{index}", self.layer_structure(config, index)
        x = self.at("resid_pre", x)
        read = self.norm(f"{name}.attention.LayerNorm", x) if not is_first else x
        query, key, value = map(self.split_heads, self.parts(read, f"{name}.attention.self.qkv.weight", 3))
        theta = config.global_rope_theta if is_global else config.local_rope_theta
        attend = self.attend if is_global else self.attend_near
        attended = attend(*self.at_vectors(self.rotate(query, theta), self.rotate(key, theta), value), bias)
        added = self.at("attn_out", self.product(attended, f"{name}.attention.output.dense.weight"))
        x = self.at("resid_mid", op.add(x, added))
        read = self.norm(f"{name}.intermediate.LayerNorm", x)
        units, gate = self.parts(read, f"{name}.intermediate.dense.weight", 2)
        units = self.at("mlp_pre", units)
        units = self.at("mlp_post", op.multiply(ACTIVATIONS[config.hidden_act](units), gate))
        x = op.add(x, self.at("mlp_out", self.product(units, f"{name}.output.dense.weight")))
        return self.at("resid_post", self.norm("bert.encoder.LayerNorm", x) if is_last else x)

    def parts(self, x: Node, name: str, count: int) -> list[Node]:
        """The products with the parts of a matrix.

        The parts of one product would be copied out of it, and an activation of one of them would be a pass of its own.
        """
        return [self.product(x, name, part=(index, count)) for index in range(count)]

    def rotate(self, x: Node, theta: float) -> Node:
        """Rotary positions: queries or keys [B, N, T, D] -> [B, N, T, D]

        In these operations OpenVINO finds its own for rotary positions (its pass RoPEFusionGPTNEOX).
        """
        cos, sin = self.once(theta, self.angles, x, theta)
        half, end = self.config.head_size // 2, np.iinfo(np.int32).max
        first = op.slice(x, ints(0), ints(half), ints(1), ints(3))
        second = op.slice(x, ints(half), ints(end), ints(1), ints(3))
        turned = op.concat([op.multiply(second, real(-1)), first], -1)
        return op.add(op.multiply(x, cos), op.multiply(turned, sin))

    def angles(self, x: Node, theta: float) -> list[Node]:
        """The cosines and sines [1, 1, T, D] of the rotary positions, each twice.

        They are rows of tables, because OpenVINO's cosine of an angle of thousands is not exact.
        """
        size = self.config.head_size
        frequencies = np.float32(1) / np.float32(theta) ** (np.arange(0, size, 2, dtype=np.float32) / np.float32(size))
        angles = np.arange(self.config.max_tokens, dtype=np.float32)[:, None] * frequencies
        length = self.length(x, 2)
        rows = [
            op.slice(constant(function(angles)), ints(0), length, ints(1), ints(0)) for function in (np.cos, np.sin)
        ]
        return [op.unsqueeze(op.concat([half, half], 1), ints(0, 1)) for half in rows]

    def attend_near(self, query: Node, key: Node, value: Node, bias: Node) -> Node:
        """As `attend`, within the window."""
        if not self.in_blocks:
            return self.attend(query, key, value, self.once("bias", self.local_bias, bias, query))
        return self.join_heads(self.block_context(query, key, value, self.once("bias", self.block_bias, bias)))

    @property
    def window(self) -> int:
        window: Any = self.config.local_attention
        return window

    @staticmethod
    def length(x: Node, axis: int) -> Node:
        return op.gather(op.shape_of(x, "i64"), ints(axis), integer(0))

    def block_context(self, query: Node, key: Node, value: Node, bias: Node) -> Node:
        """Queries, keys and values [B, N, T, D] and the mask of `block_bias` -> [B, N, T, D]"""
        heads, size = self.config.num_attention_heads, self.config.head_size
        length = self.length(query, 2)

        def cut(x, around):
            """[B, N, T, D] -> [B blocks, N, C, D], or C + W with what is `around` the block."""
            parts = op.transpose(self.cut_blocks(x, 2, around), ints(0, 2, 1, 3, 4))
            count = self.block_size + (self.window_rows if around else 0)
            return op.reshape(parts, ints(-1, heads, count, size), False)

        blocks = op.scaled_dot_product_attention(
            cut(query, False), cut(key, True), cut(value, True), bias, real(self.score_scale)
        )  # [B blocks, N, C, D]
        count = self.block_count(length)
        shape = op.concat([ints(-1), count, ints(heads, self.block_size, size)], 0)
        joined = op.transpose(op.reshape(blocks, shape, False), ints(0, 2, 1, 3, 4))
        joined = op.reshape(joined, ints(0, heads, -1, size), True)
        return op.slice(joined, ints(0), length, ints(1), ints(2))

    @property
    def block_size(self) -> int:
        return _BLOCK * self.window

    @property
    def window_rows(self) -> int:
        """How many keys a block meets beside its own: half a window on each side."""
        return 2 * (self.window // 2)

    def block_count(self, length: Node) -> Node:
        return op.divide(op.add(length, ints(self.block_size - 1)), ints(self.block_size))

    def cut_blocks(self, x: Node, axis: int, around: bool, fill: float = 0.0) -> Node:
        """Cut an axis of T into two of [blocks, C], or [blocks, C + W] with half a window before and after each block.

        What is beyond the text has the value `fill`.
        """
        length = self.length(x, axis)
        count = self.block_count(length)
        whole = op.multiply(count, ints(self.block_size))
        half = self.window_rows // 2 if around else 0
        rank = len(_shape(x))
        zeros = [ints(0)] * rank
        before = op.concat([*zeros[:axis], ints(half), *zeros[axis + 1 :]], 0)
        after = op.concat([*zeros[:axis], op.add(op.subtract(whole, length), ints(half)), *zeros[axis + 1 :]], 0)
        padded = op.pad(x, before, after, "constant", real(fill))
        shape = op.concat(
            [ints(*[0] * axis), count, ints(self.block_size), *(self.length(x, one) for one in range(axis + 1, rank))],
            0,
        )

        def blocks_from(first):
            part = op.slice(padded, ints(first), op.add(whole, ints(first)), ints(1), ints(axis))
            return op.reshape(part, shape, True)

        if not around:
            return blocks_from(0)
        last = op.slice(
            blocks_from(2 * half), ints(self.block_size - 2 * half), ints(self.block_size), ints(1), ints(axis + 1)
        )
        return op.concat([blocks_from(0), last], axis + 1)

    def block_bias(self, bias: Node) -> Node:
        """The additive mask [B blocks, 1, C, C + W] of the scores of blocks from that of padding [B, 1, 1, T]."""
        size, rows = self.block_size, self.window_rows
        distance = np.abs(np.arange(size)[:, None] - (np.arange(size + rows)[None] - rows // 2))
        far = np.where(distance > self.window // 2, np.float32(2 * MASKED_SCORE), np.float32(0))  # [C, C + W]
        keys = self.cut_blocks(bias, 3, True, 4 * MASKED_SCORE)  # [B, 1, 1, blocks, C + W]
        return op.add(op.reshape(keys, ints(-1, 1, 1, size + rows), False), constant(far[None, None]))

    def local_bias(self, bias: Node, query: Node) -> Node:
        """The additive mask [B, 1, T, T] of local attention from that of padding [B, 1, 1, T], for queries of T."""
        length = op.gather(op.shape_of(query, "i64"), integer(2), integer(0))
        places = op.range(integer(0), length, integer(1), "i64")
        distance = op.abs(op.subtract(op.unsqueeze(places, ints(1)), op.unsqueeze(places, ints(0))))
        is_far = op.greater(distance, integer(self.window // 2))
        return op.add(bias, op.multiply(op.convert(is_far, np.float32), real(2 * MASKED_SCORE)))


def _shape(node: Node) -> Any:
    return (node.output(0) if isinstance(node, ov.Node) else node).get_partial_shape()
