"""The OpenVINO graph of DeBERTa-v3, over the graph of BERT.

B batch, T tokens, H hidden size, N heads, D head size, S buckets on each side.
"""

from typing import Any

import numpy as np
import openvino.opset13 as op

from bert_tf.layers.deberta.positions import bucket_rows
from bert_tf.parameters import POSITIONS_TABLE
from bert_tf.runtime.graphs.bert import Graph, Node, constant, integer, ints, real
from bert_tf.runtime.numpy_ops import dense, layer_norm
from bert_tf.runtime.weights import parameter

_TABLE_NORM = POSITIONS_TABLE.replace("weight", "LayerNorm")


class DisentangledGraph(Graph):
    """The graph of `bert_tf.layers.deberta.encoder.DisentangledEncoderLayer`."""

    def attention(self, name: str, x: Node, bias: Node) -> Node:
        query, key, value = self.vectors(name, x)
        rows, backwards = (self.once(step, self.rows_of_distances, x, step) for step in (1, -1))
        from_content = self.shift_rows(op.matmul(query, self.places(f"{name}.key", rows), False, True))
        from_place = self.shift_rows(op.matmul(key, self.places(f"{name}.query", backwards), False, True))
        places = op.add(from_content, op.transpose(from_place, ints(0, 1, 3, 2)))
        return self.attend(query, key, value, op.add(places, bias))

    def rows_of_distances(self, x: Node, step: int) -> Node:
        """The rows of the table of positions for the distances T - 1 to -(T - 1), or backwards, int32 [2 T - 1]."""
        config: Any = self.config  # the settings of relative positions are not None here
        most = config.max_position_embeddings
        rows = bucket_rows(config.position_buckets, config.max_relative_positions, most)[::step]
        length = self.once("length", lambda: op.gather(op.shape_of(x, "i64"), ints(1), integer(0)))
        return op.slice(
            constant(rows), op.subtract(ints(most), length), op.add(ints(most - 1), length), ints(1), ints(0)
        )

    def places(self, name: str, rows: Node) -> Node:
        """The scaled keys or queries of relative positions [N, 2 T - 1, D], by their projection and their rows.

        The projection of the whole table does not depend on the input, so it is computed once, here, where the weights
        are known.
        """
        if self.weights_are_inputs:
            table = self.once("table", lambda: self.norm(_TABLE_NORM, self.vector(POSITIONS_TABLE)))
            projected = self.dense(name, op.unsqueeze(op.gather(table, rows, integer(0)), ints(0)))
            return op.multiply(self.split_heads(projected), real(self.score_scale))
        table = self.once(
            "table", lambda: layer_norm(self.runnable, _TABLE_NORM, parameter(self.runnable, POSITIONS_TABLE).float32())
        )
        projected = dense(self.runnable, name, table)
        heads = projected.reshape(len(projected), self.config.num_attention_heads, -1).swapaxes(0, 1)
        return op.gather(constant(heads * np.float32(self.score_scale)), rows, integer(1))

    def shift_rows(self, x: Node) -> Node:
        """[B, N, T, 2 T - 1] -> [B, N, T, T]; see `bert_tf.layers.deberta.encoder.shift_rows`."""
        length = self.shared["length"]  # [1]
        one, two = ints(1), ints(2)
        width = op.subtract(op.multiply(length, two), one)
        flat = op.reshape(op.pad(x, ints(0, 0, 0, 0), ints(0, 0, 0, 1), "constant"), ints(0, 0, -1), True)
        first = op.subtract(length, one)
        last = op.add(first, op.multiply(length, width))
        kept = op.slice(flat, first, last, one, two)
        square = op.reshape(kept, op.concat([ints(0, 0, -1), width], 0), True)
        return op.slice(square, ints(0), length, one, ints(3))
