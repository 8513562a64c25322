"""The forward pass of a model in steps, with the values inside a layer read or replaced, on OpenVINO.

Each kind of step is one small graph, compiled once. The weights are inputs of the graph and stay as they are stored, so
one graph serves all layers of the same structure and no layer is packed a second time.

B batch, T tokens, H hidden size, N heads, D head size, R rows, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import openvino as ov
import openvino.opset13 as op

from bert_tf.checkpoints.stored_model import StoredModel
from bert_tf.errors import check_scores, post_norm_needed
from bert_tf.layers.hook_points import POINTS
from bert_tf.runtime import head_gradients
from bert_tf.runtime.compiled_graphs import CompiledGraphs
from bert_tf.runtime.graphs.bert import Graph, Node, graph_class, integer, ints, tensor
from bert_tf.runtime.model_steps import ModelSteps
from bert_tf.runtime.numpy_ops import finish_layer, read_by_mlm
from bert_tf.runtime.openvino_engine import core, free_workspace

_LAYER = "bert.encoder.layer."
_STEP_BYTES = 3  # for each value of a layer, as measured: a step holds some of its weights in float32, and its results
#: The types of weights that a step reads as they are stored.
_ELEMENT_TYPES = {
    np.dtype(np.int8): ov.Type.i8,
    np.dtype(np.float16): ov.Type.f16,
    np.dtype(ml_dtypes.bfloat16): ov.Type.bf16,
    np.dtype(np.float32): ov.Type.f32,
}
_NO_BIAS = np.zeros((1, 1, 1, 1), np.float32)
_SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
#: Arrays of a value of the dict `replace`: (mask or None, values).
Replacement = tuple[np.ndarray | None, np.ndarray]


class LayerSteps(ModelSteps):
    """The embeddings, each encoder layer with its hook points, and the heads of a model, as separate functions.

    All arrays are float32, and all inputs of a batch have the same length, without padding. Several threads may use one
    object at once.

    Args:
        model: `StoredModel`.
        task: `TaskModel` or None. The task of a fine-tuned model.
        name: str. The name of the model, for messages.

    Attributes:
        config: `BertConfig`. The settings.
        graphs: `CompiledGraphs`. The steps.

    Example:
        >>> steps = LayerSteps(bert_tf.load().weights)
        >>> states = steps.states(trace.token_ids[None], trace.segments[None])
        >>> steps.values(3, states[3], ("pattern",))["pattern"].shape
    """

    def __init__(self, model: StoredModel, task: Any = None, name: str = "this model") -> None:
        self.config, self._model, self._task, self._name = model.bert_config, model, task, name
        self.graphs = CompiledGraphs(self._graph_bytes, free=lambda _, step: free_workspace(step.request))
        self._tensors: dict[tuple[str, str], ov.Tensor] = {}

    def embed(self, token_ids: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
        """Hidden state 0, [B, T, H], for token and segment ids int32 [B, T]."""

        def make(graph):
            inputs = [op.parameter([-1, -1], np.int32) for _ in range(2)]
            return inputs, [graph.embeddings(*inputs)]

        return self._run("embed", make, (np.asarray(token_ids, np.int32), np.asarray(segment_ids, np.int32)))[0]

    def values(
        self,
        index: int,
        x: np.ndarray,
        points: Iterable[str],
        bias: np.ndarray | None = None,
        replace: Mapping[str, Replacement] | None = None,
    ) -> dict[str, np.ndarray]:
        """The values inside layer `index`, computed from hidden state `index`, with some of them replaced.

        Args:
            index: int. The layer, from 0.
            x: [B, T, H]. Hidden state `index`.
            points: sequence of str. The `HOOK_POINTS` to return. What none of them needs is not computed.
            bias: array. Added to the attention scores and broadcast to [B, N, T, T]; `MASKED_SCORE` blocks a link. None
                for no bias.
            replace: dict. From names of `HOOK_POINTS` to pairs (mask, values): a bool array that marks where the value
                is replaced, and the array that replaces it. Both have as many axes as the value and broadcast to it. A
                mask of None replaces the value everywhere; what it was computed from is then not computed. Any batch
                axis may be 1.

        Returns:
            dict from the names to arrays. They include the replacements.
        """
        points, replace = tuple(points), replace or {}
        pairs = {name: replace[name] for name in POINTS if name in replace}
        kinds = tuple((name, mask is not None) for name, (mask, _) in pairs.items())
        arrays = [np.asarray(x, np.float32), _NO_BIAS if bias is None else np.asarray(bias, np.float32)]
        for mask, values in pairs.values():
            arrays += [] if mask is None else [np.asarray(mask, bool)]
            arrays.append(np.asarray(values, np.float32))

        def make(graph):
            state = op.parameter([-1, -1, graph.config.hidden_size], np.float32)
            scores = op.parameter([-1] * 4, np.float32)
            inputs = [state, scores, *graph.replace_by(kinds)]
            graph.layer(index, state, scores)
            return inputs, [graph.value_at(point) for point in points]

        return dict(zip(points, self._run(("layer", points, kinds), make, arrays, index)))

    def check_post_norm(self, analysis: str, through_scores: bool = False) -> None:
        """As in `HookedModel`."""
        architecture = self.config.architecture
        if architecture.norm_first:
            raise post_norm_needed(analysis, self._name, architecture.layer_class.rpartition(".")[2])
        if through_scores:
            check_scores(self.config, self._name, analysis)

    def odds_gradient(self, x: np.ndarray, target: Any) -> tuple[np.ndarray, np.ndarray]:
        """A target's log-odds and their gradient at the last hidden state x [B, T, H], as `HookedModel` has them.

        Args:
            x: [B, T, H]. The last hidden state.
            target: Target. An answer of a head in `bert_tf.runtime.head_gradients.HEADS`.
        """
        return head_gradients.odds_gradient(self._model, x, target)

    def unchanged(self, index: int, x: np.ndarray) -> np.ndarray:
        """The output of layer `index` for its input x [B, T, H] if its blocks add nothing and are not normalized."""
        return finish_layer(self._model, index, x)

    def read(self, x: np.ndarray) -> np.ndarray:
        return read_by_mlm(self._model, x)

    def mlm_log_probabilities(self, rows: np.ndarray) -> np.ndarray:
        def make(graph):
            states = op.parameter([-1, graph.config.hidden_size], np.float32)
            return [states], [op.log_softmax(graph.mlm_logits(states), -1)]

        return self._run("mlm", make, (rows,))[0]

    def nsp_log_probabilities(self, x: np.ndarray) -> np.ndarray:
        return _log_softmax(self._head("nsp", x))

    def sop_log_probabilities(self, x: np.ndarray) -> np.ndarray:
        return _log_softmax(self._head("sop", x))

    def replaced_log_probabilities(self, x: np.ndarray) -> np.ndarray:
        logits = self._head("replaced", x)
        return -np.logaddexp(0, np.stack([logits, -logits], axis=-1))

    def class_scores(self, x: np.ndarray) -> np.ndarray:
        return self._task.class_scores(x)

    def _head(self, head, x):
        """The logits of a head that reads last hidden states [B, T, H]."""

        def make(graph):
            states = op.parameter([-1, -1, graph.config.hidden_size], np.float32)
            graph.heads = {head} if head == "replaced" else {"pooler", head}
            graph.add_heads(states, ints())
            return [states], graph.results[f"{head}_logits"]

        return self._run(head, make, (x,))[0]

    def _run(self, key, make, arrays, index=0):
        group = self.config.layer_groups[index]
        if isinstance(key, tuple):
            key = key, self._types(group), graph_class(self._model).layer_structure(self.config, index)
        with self.graphs.using(key, lambda: _Step(self._model, make, group)) as step:
            weights = [self._tensor(name, part) for name, part in step.weights(group)]
            return step([*arrays, *weights])

    def _types(self, group):
        """The types of a layer's weights: layers with other types cannot share a step."""
        weights = [self._model.weights[name] for name in self._names(group)]
        return tuple((weight.values.dtype, weight.scales is None) for weight in weights)

    def _graph_bytes(self, key):
        if key == "mlm":  # the token table in float32
            return 4 * self.config.vocab_size * self.config.embedding_width
        return _STEP_BYTES * sum(math.prod(self._model.weights[name].shape) for name in self._names(0))

    def _names(self, group):
        """The names of a layer's weights."""
        return [name for name in self._model.weights if name.startswith(f"{_LAYER}{group}.")]

    def _tensor(self, name, part):
        if (name, part) not in self._tensors:
            self._tensors[name, part] = tensor(_stored(self._model.weights[name], part))
        return self._tensors[name, part]


class _Step:
    """A compiled graph, whose last inputs are weights; those of the layer `group` stand for those of any layer."""

    def __init__(self, model, make, group):
        graph: Any = type("StepGraph", (_StepGraph, graph_class(model)), {})(model)
        inputs, results = make(graph)
        self._weights, self._start = list(graph.inputs), f"{_LAYER}{group}."
        compiled = core().compile_model(ov.Model(results, [*inputs, *graph.inputs.values()]), "CPU", _SETTINGS)
        self.request, self._count = compiled.create_infer_request(), len(results)

    def weights(self, group):
        """The weights for a layer, as (name, "values" or "scales")."""
        return [(name.replace(self._start, f"{_LAYER}{group}.", 1), part) for name, part in self._weights]

    def __call__(self, tensors):
        arrays = [one if isinstance(one, ov.Tensor) else np.ascontiguousarray(one) for one in tensors]
        self.request.infer(arrays, share_outputs=True)
        return [self.request.get_output_tensor(index).data.copy() for index in range(self._count)]


class _StepGraph(Graph):
    """A graph with its weights as inputs, and its hook points read and replaced.

    Parallel stacks pass each hook point one after the other. A value, a mask and a replacement belong to all of them.
    """

    weights_are_inputs = True

    def __init__(self, model):
        super().__init__(model, "steps", False)
        self.inputs: dict[tuple[str, str], Node] = {}
        self._reached: dict[str, list[Node]] = {}
        self._replacements: dict[str, list[Node]] = {}

    def replace_by(self, kinds: Sequence[tuple[str, bool]]) -> list[Node]:
        """The inputs that replace values: for each (hook point, whether it has a mask) the mask and the values."""
        for name, has_mask in kinds:
            axes = [-1] * len(POINTS[name].shape)
            mask = [op.parameter(axes, np.dtype(bool))] if has_mask else []
            self._replacements[name] = [*mask, op.parameter(axes, np.float32)]
        return [node for pair in self._replacements.values() for node in pair]

    def flag(self, output):
        return ints(np.iinfo(np.int64).max)  # all rows of every output

    def at(self, point, value):
        reached = self._reached.setdefault(point, [])
        if point in self._replacements:
            *mask, values = (self._of_stack(one, point, value, len(reached)) for one in self._replacements[point])
            value = op.select(mask[0], values, value) if mask else values
        reached.append(value)
        return value

    def value_at(self, point: str) -> Node:
        """The value at a hook point that the layer has passed, of all its stacks."""
        values = self._reached[point]
        return values[0] if len(values) == 1 else op.concat(values, POINTS[point].stacks_axis)

    def _of_stack(self, node, point, value, stack):
        """The part of a mask or a replacement for the `value` of one stack, from 0."""
        if self.config.stacks == 1:
            return node
        axis, axes = POINTS[point].stacks_axis % len(POINTS[point].shape), len(POINTS[point].shape)
        size = op.gather(op.shape_of(value, "i64"), ints(axis), integer(0))
        width = op.multiply(size, ints(self.config.stacks))  # what broadcasts has one entry for all
        shape = [width if one == axis else ints(1) for one in range(axes)]
        whole = op.broadcast(node, op.concat(shape, 0), broadcast_spec="BIDIRECTIONAL")
        start = op.multiply(size, ints(stack))
        return op.slice(whole, start, op.add(start, size), ints(1), ints(axis))

    def product(self, x, name, rounds_input=True, part=(0, 1)):
        # The scales of the rows of an eight-bit matrix multiply the columns of the product.
        result = op.matmul(x, _part(self._floats(name), part), False, True)
        if self.weights(name).weight.scales is None:
            return result
        return op.multiply(result, _part(self._input(name, "scales"), part))

    def rows_of(self, name, ids):
        rows = op.convert(op.gather(self._input(name, "values"), ids, integer(0)), np.float32)
        if self.weights(name).weight.scales is None:
            return rows
        return op.multiply(rows, op.unsqueeze(op.gather(self._input(name, "scales"), ids, integer(0)), ints(-1)))

    def vector(self, name):
        if self.weights(name).weight.scales is None:
            return self._floats(name)
        return op.multiply(self._floats(name), op.unsqueeze(self._input(name, "scales"), ints(-1)))

    def _floats(self, name):
        node = self._input(name, "values")
        return node if node.get_element_type() == ov.Type.f32 else op.convert(node, np.float32)

    def _input(self, name, part):
        if (name, part) not in self.inputs:
            array = _stored(self.weights(name).weight, part)
            self.inputs[name, part] = op.parameter(list(array.shape), _ELEMENT_TYPES[array.dtype])
        return self.inputs[name, part]


def _part(node, part):
    """Part number `index` of `count` equal parts of the rows of a matrix, for (index, count)."""
    index, count = part
    return node if count == 1 else op.split(node, integer(0), count).output(index)


def _stored(weight, part):
    """An array of a `Weight` as it is stored, in float32 if a step does not read its type."""
    array = getattr(weight, part)
    return array if array.dtype in _ELEMENT_TYPES else array.astype(np.float32)


def _log_softmax(logits):
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
