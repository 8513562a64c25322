"""An OpenVINO graph of this project as an ONNX model: each operation becomes its namesake of ONNX.

Only the operations that the graphs of `bert_tf` have are known; another one is an error.

Source: the operators of ONNX opset 20, and those of OpenVINO's opset 13.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov

from bert_tf.errors import CheckpointError

_OPSET = 20
# Gelu is in opset 20, which came with this version of the format.
_IR_VERSION = 9
_SAME = {
    "Add": "Add",
    "Subtract": "Sub",
    "Multiply": "Mul",
    "Divide": "Div",
    "Maximum": "Max",
    "Tanh": "Tanh",
    "Relu": "Relu",
    "ReLU": "Relu",
    "Sigmoid": "Sigmoid",
    "Exp": "Exp",
    "Sqrt": "Sqrt",
    "Abs": "Abs",
    "Greater": "Greater",
    "Range": "Range",
    "Unsqueeze": "Unsqueeze",
    "Squeeze": "Squeeze",
    "ShapeOf": "Shape",
}


def to_onnx(model: ov.Model) -> Any:
    """Translate a graph.

    Args:
        model: `openvino.Model`. Its parameters and results have names.

    Returns:
        `onnx.ModelProto`.

    Raises:
        CheckpointError: onnx is not installed, or the graph has an operation that is not known here.
    """
    try:
        import onnx
    except ImportError as error:
        raise CheckpointError("Writing ONNX needs the package onnx: `pip install onnx`.") from error
    return _Translation(onnx, model).run()


class _Translation:
    def __init__(self, onnx, model):
        self.onnx, self.model = onnx, model
        self.nodes, self.initializers, self.names = [], [], {}
        self.constants: dict[str, np.ndarray] = {}
        self.stored: set[str] = set()
        # Hash of a constant -> its name: the table of tokens is in the embeddings and in the MLM head.
        self.known: dict[int, str] = {}

    def run(self):
        inputs, outputs = [], []
        for node in self.model.get_ordered_ops():
            kind = node.get_type_name()
            if kind == "Parameter":
                name = node.output(0).get_any_name()
                self.names[self._key(node.output(0))] = name
                inputs.append(self._value(name, np.int32, ("batch", "tokens")))
            elif kind == "Constant":
                # A copy: the memory of the graph belongs to the model.
                half = node.get_element_type().get_type_name() == "bf16"  # NumPy has no such type
                array = np.array(node.get_data(dtype=np.float32) if half else node.data)
                key = hash((array.dtype.str, array.shape, array.tobytes()))
                if key not in self.known:
                    self.known[key] = self._new(array)
                self.names[self._key(node.output(0))] = self.known[key]
            elif kind == "Result":
                source = self._input(node, 0)
                name = node.get_friendly_name()
                self.nodes.append(self.onnx.helper.make_node("Identity", [self._use(source)], [name]))
                outputs.append(self._value(name, np.float32, self._axes(node)))
            else:
                self._operation(node, kind)
        graph = self.onnx.helper.make_graph(self.nodes, "bert", inputs, outputs, self.initializers)
        opset = self.onnx.helper.make_opsetid("", _OPSET)
        return self.onnx.helper.make_model(
            graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="bert_tf"
        )

    def _value(self, name, dtype, shape):
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)

    def _axes(self, node):
        shape = node.get_input_partial_shape(0)
        names = ("batch", "tokens")
        return tuple(
            size.get_length() if size.is_static else (names[axis] if axis < 2 else f"axis_{axis}")
            for axis, size in enumerate(shape)
        )

    def _key(self, output):
        return output.get_node().get_name(), output.get_index()

    def _input(self, node, index):
        return self.names[self._key(node.input_value(index))]

    def _use(self, name):
        """The name of a value that an operation reads; a constant is stored when it is first read."""
        if name in self.constants and name not in self.stored:
            self.stored.add(name)
            self.initializers.append(self.onnx.numpy_helper.from_array(self.constants[name], name))
        return name

    def _constant(self, node, index):
        """The value of an input that ONNX has as an attribute."""
        return self.constants[self._input(node, index)]

    def _new(self, array):
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def _add(self, operator, inputs, outputs=1, **attributes):
        names = [f"value_{len(self.nodes)}_{index}" for index in range(outputs)]
        node = self.onnx.helper.make_node(operator, [self._use(name) for name in inputs], names, **attributes)
        self.nodes.append(node)
        return names

    def _operation(self, node, kind):
        inputs = [self._input(node, index) for index in range(node.get_input_size())]
        attributes = node.get_attributes()
        if kind in _SAME:
            results = self._add(_SAME[kind], inputs)
        else:
            translate = getattr(self, f"_{kind.lower()}", None)
            if translate is None:
                raise CheckpointError(f"The graph has the operation {kind}, which is not written as ONNX.")
            results = translate(node, inputs, attributes)
        for index, name in enumerate(results):
            self.names[self._key(node.output(index))] = name

    def _gather(self, node, inputs, attributes):
        return self._add("Gather", inputs[:2], axis=self._constant(node, 2).item())

    def _convert(self, node, inputs, attributes):
        kind = {"f32": np.float32, "i64": np.int64, "i32": np.int32}[attributes["destination_type"]]
        return self._add("Cast", inputs, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def _matmul(self, node, inputs, attributes):
        second = inputs[1]
        if attributes["transpose_b"]:
            rank = len(node.get_input_partial_shape(1))
            if second in self.constants and self.constants[second].dtype == np.float32:
                second = self._new(np.ascontiguousarray(np.swapaxes(self.constants[second], -1, -2)))
            else:
                (second,) = self._add("Transpose", [second], perm=[*range(rank - 2), rank - 1, rank - 2])
        return self._add("MatMul", [inputs[0], second])

    def _transpose(self, node, inputs, attributes):
        return self._add("Transpose", inputs[:1], perm=self._constant(node, 1).tolist())

    def _reshape(self, node, inputs, attributes):
        return self._add("Reshape", inputs)

    def _softmax(self, node, inputs, attributes):
        return self._add("Softmax", inputs, axis=attributes["axis"])

    def _mvn(self, node, inputs, attributes):
        width = node.get_input_partial_shape(0)[-1].get_length()
        ones = self._new(np.ones(width, np.float32))
        return self._add("LayerNormalization", [inputs[0], ones], axis=-1, epsilon=attributes["eps"])

    def _gelu(self, node, inputs, attributes):
        kind = "tanh" if attributes["approximation_mode"].lower() == "tanh" else "none"
        return self._add("Gelu", inputs, approximate=kind)

    def _clamp(self, node, inputs, attributes):
        bounds = [self._new(np.float32(attributes[name])) for name in ("min", "max")]
        return self._add("Clip", [*inputs, *bounds])

    def _slice(self, node, inputs, attributes):
        data, start, stop, step, *axes = inputs
        return self._add("Slice", [data, start, stop, *axes, step] if axes else [data, start, stop])

    def _pad(self, node, inputs, attributes):
        pads = self._new(np.concatenate([self._constant(node, 1), self._constant(node, 2)]).astype(np.int64))
        return self._add("Pad", [inputs[0], pads])

    def _split(self, node, inputs, attributes):
        count = node.get_output_size()
        return self._add("Split", inputs[:1], count, axis=self._constant(node, 1).item(), num_outputs=count)

    def _concat(self, node, inputs, attributes):
        return self._add("Concat", inputs, axis=attributes["axis"])

    def _reducesum(self, node, inputs, attributes):
        return self._add("ReduceSum", inputs, keepdims=int(attributes["keep_dims"]))

    def _reducemax(self, node, inputs, attributes):
        return self._add("ReduceMax", inputs, keepdims=int(attributes["keep_dims"]))

    def _scaleddotproductattention(self, node, inputs, attributes):
        query, key, value, bias, scale = inputs
        (turned,) = self._add("Transpose", [key], perm=[0, 1, 3, 2])
        (scaled,) = self._add("Mul", [query, scale])
        (scores,) = self._add("MatMul", [scaled, turned])
        (masked,) = self._add("Add", [scores, bias])
        (pattern,) = self._add("Softmax", [masked], axis=-1)
        return self._add("MatMul", [pattern, value])
