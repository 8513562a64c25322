"""A model, with the head of its task if it has one, as one OpenVINO graph with named inputs and outputs.

It is the graph that the engine runs (`bert_tf.runtime.graphs.bert`), without the engine's choice of outputs: it has
all of them, and the logits of every token.

B batch, T tokens, H hidden size, V vocabulary, K outputs of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov
import openvino.opset13 as op

from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.model_outputs import INPUTS
from bert_tf.runtime.graphs.bert import ACTIVATIONS, Node, constant, graph_class, integer, ints, real

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert


def export_graph(bert: Bert, eight_bits: bool = False) -> ov.Model:
    """The graph of a model.

    Its inputs are token_ids, segment_ids and padding_mask, int32 [B, T]. Its outputs are sequence_output [B, T, H] and
    those of the pre-training heads (mlm_logits [B, T, V]), or those of the head of a task alone; of multiple choice one
    score [B] for each row, a context with one choice.

    Args:
        bert: `Bert`.
        eight_bits: bool. Whether the matrices are stored in eight bits with a scale for each row.

    Returns:
        `openvino.Model`.
    """
    graph: Any = _exported(graph_class(bert.weights))(bert.weights, "plain", eight_bits)
    return graph.model(bert.task)


def _exported(base: Any) -> Any:
    class Exported(base):
        """The graph of a member without the engine's input `rows`: every output has all its rows."""

        def model(self, task: Any) -> ov.Model:
            inputs = [op.parameter([-1, -1], np.int32, name=name) for name in INPUTS]
            for node, name in zip(inputs, INPUTS):
                node.output(0).set_names({name})
            self.batch = op.slice(op.shape_of(inputs[0], "i64"), ints(0), ints(1), ints(1))
            x = self.encode(*inputs)
            if task is None:
                self.add_heads(x, None)
                outputs = {name: nodes[0] for name, nodes in self.results.items() if name in _OUTPUTS}
            else:
                outputs = _TaskHead(self, task, inputs[2]).outputs(x)
            results = []
            for name, node in outputs.items():
                result = op.result(node)
                result.output(0).set_names({name})
                result.set_friendly_name(name)
                results.append(result)
            return ov.Model(results, inputs, "bert")

        def add_result(self, output: str, node: Node) -> None:
            if output == "sequence_output":
                self.results[output] = [node]

        def flag(self, output: str) -> Node:
            return self.batch

        def rows_of(self, name: str, ids: Node) -> Node:
            weight = self.weights(name).weight
            if not self.eight_bits or weight.scales is not None or ids.get_type_name() == "Constant":
                return super().rows_of(name, ids)
            # The same values as in the MLM head, so that a file holds them once.
            weight = weight.quantized()
            rows = op.convert(op.gather(constant(weight.values), ids, integer(0)), np.float32)
            return op.multiply(rows, op.gather(constant(weight.scales[:, None]), ids, integer(0)))

    return Exported


_OUTPUTS = ("sequence_output", "pooled_output", "mlm_logits", "nsp_logits", "sop_logits", "replaced_logits")


class _TaskHead:
    """The head of a task in OpenVINO: the formulas of `finetuning.tasks.head_formulas`."""

    def __init__(self, graph, task, padding_mask):
        self.graph, self.task, self.settings = graph, task, task.settings
        self.tensors = task.head_tensors()
        self.real = op.unsqueeze(op.convert(padding_mask, np.float32), ints(2))  # [B, T, 1]

    def outputs(self, x):
        settings, task_type, config = self.settings, self.task.task_type, self.graph.config
        if settings.task == "similarity":
            vectors = self.vector(x, None)
            if settings.extra["normalize"]:
                length = op.sqrt(op.reduce_sum(op.multiply(vectors, vectors), ints(1), True))
                vectors = op.divide(vectors, op.maximum(length, real(1e-12)))
            return {"vectors": vectors}
        first_layer, last = task_type.first_layer(settings, config), "classifier"
        predicts = bool(task_type.prediction(config))
        pooled = self.first(x)
        if first_layer:
            name, last = first_layer["names"]
            pooled = ACTIVATIONS[first_layer["hidden_act"]](self.dense(name, pooled))
        elif task_type.needs_pooler(settings):
            pooled = op.tanh(self.graph.dense("bert.pooler.dense", pooled))
        if settings.task == "classify":
            vector = self.vector(x, pooled)
            return {"logits": self.dense(last, self.predicted(vector) if predicts else vector)}
        states = self.predicted(x) if predicts else x
        if settings.task == "choose":
            scores = self.dense(last, self.first(states) if predicts else pooled)
            return {"logits": op.squeeze(scores, ints(1))}
        logits = self.dense("qa_outputs" if "qa_outputs.weight" in self.tensors else "classifier", states)
        if settings.task == "tag":
            if not settings.extra.get("crf"):
                return {"logits": logits}
            return {"logits": logits, "transitions": constant(np.ascontiguousarray(self.tensors["crf.transitions"].T))}
        start, end = op.split(logits, integer(2), 2).outputs()
        return {"start_logits": op.squeeze(start, ints(2)), "end_logits": op.squeeze(end, ints(2))}

    def first(self, x):
        """The first token's hidden state [B, H]."""
        return op.squeeze(op.slice(x, ints(0), ints(1), ints(1), ints(1)), ints(1))

    def vector(self, x, pooled):
        """The vector [B, H] of the pooling."""
        kind = self.settings.pooling
        if kind == "cls":
            return pooled
        if kind == "first":
            return self.first(x)
        hidden = op.multiply(op.subtract(real(1), self.real), real(MASKED_SCORE))
        if kind == "max":
            return op.reduce_max(op.add(x, hidden), ints(1), False)
        weights = self.real
        if kind == "attention":
            weights = op.softmax(op.add(self.dense("attention_pooling", x), hidden), 1)
            return op.reduce_sum(op.multiply(x, weights), ints(1), False)
        total = op.reduce_sum(op.multiply(x, weights), ints(1), False)
        return op.divide(total, op.maximum(op.reduce_sum(weights, ints(1), False), real(1)))

    def dense(self, name, x):
        product = op.matmul(x, constant(self.tensors[f"{name}.weight"]), False, True)
        return op.add(product, constant(self.tensors[f"{name}.bias"]))

    def predicted(self, x):
        """The layers of a `layers.pooler.PredictionHead`."""
        x = ACTIVATIONS["gelu"](op.matmul(x, constant(self.tensors["head.dense.weight"]), False, True))
        x = op.mvn(x, ints(-1), True, self.graph.config.layer_norm_eps, "inside_sqrt")
        return op.multiply(x, constant(self.tensors["head.norm.weight"]))
