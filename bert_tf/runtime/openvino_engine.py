"""The OpenVINO engine: a compiled graph for each kind of output, for all batch sizes, lengths and sets of outputs.

B batch, T tokens, P predicted positions.
"""

import contextlib
import functools
import logging
import math
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op

from bert_tf.model_outputs import INPUTS
from bert_tf.parameters import parameter_counts, parameter_spec
from bert_tf.runtime.compiled_graphs import CompiledGraphs
from bert_tf.runtime.graphs.bert import FLAGS, VECTORS, build, build_mlm_head, build_mlm_reading
from bert_tf.runtime.graphs.eight_bits import group_size
from bert_tf.runtime.weights import RunnableModel

_log = logging.getLogger(__name__)

# In int8 this is the precision of what is not computed in eight bits.
_HINTS = {"float32": "f32", "bfloat16": "bf16", "int8": "bf16"}
_LISTS = ("hidden_states", "attentions", *VECTORS)
_LOGITS = "mlm_logits"
# A compiled graph holds the weights as they are stored and at most about two bytes more for each value, as measured: on
# some processors it packs some of them again in float for products with many rows.
_PACKED_BYTES = 2
_MLM_READING = "mlm reading"  # the kind of the graph of `read_mlm`
_MLM_HEAD = "mlm head"  # the kind of the graph of the MLM head, where it is computed apart
_HEADS = (_MLM_HEAD, _MLM_READING)
_ONE_THREAD = "one thread"  # the kind of the graph of short inputs where other work waits for the cores
_SHORT_KINDS = (_ONE_THREAD, "short")
_ALIGNMENT = 16  # floats: OpenVINO copies results if the memory is not aligned to 64 bytes

# Up to this many tokens in a batch, two threads wait for each other so often that one thread alone takes less processor
# time (`benchmarks/short_inputs.py`), and products in eight bits are faster than those in bfloat16 tiles.
_SHORT = 64
# Up to this many tokens in a batch, the attention maps cost no time. Then one graph, with one packing of the weights,
# serves requests with and without maps.
_SMALL = 256

# How many compiled products oneDNN, with which OpenVINO computes, keeps for the process. It would keep 1,024, for each
# length of a text others: 70 MB that no model gives back. Each graph keeps its own, so a smaller number costs no time.
_KEPT_PRODUCTS = 32

# Texts longer than this many windows of local attention are cut into blocks; in shorter ones the copies of the blocks
# cost as much as the scores that they save.
_LONG = 5


@functools.cache
def core() -> ov.Core:
    """Return the OpenVINO core, created once per process.

    On a processor with AMX, each core gives its thread another signal stack when it is created and removes it when it
    is deleted, in any order. After that, the next signal (such as Ctrl-C) would end the process.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_KEPT_PRODUCTS))  # it is read at the first product
    return ov.Core()


@functools.cache
def has_tiles() -> bool:
    """Return whether the processor multiplies bfloat16 matrices in tiles (AMX).

    With inputs in bfloat16, OpenVINO then computes no product in eight bits.
    """
    x = op.parameter([64, 64], np.float32)
    model = ov.Model([op.matmul(x, op.constant(np.ones((64, 64), np.float32)), False, True)], [x], "product")
    compiled = core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"})
    facts = (node.get_rt_info() for node in compiled.get_runtime_model().get_ops())
    return any("amx" in one["primitiveType"].value for one in facts if "primitiveType" in one)


@functools.cache
def computed_in(precision: str) -> str:
    """Return the precision in which OpenVINO computes on this processor: that which is asked for, or "float32".

    A processor that has neither AVX-512 nor the newer instructions of AVX2 computes bfloat16 and int8 in float32.
    Nothing reports this, so one product is computed as in a model and compared with the exact one.

    Args:
        precision: str. "float32", "bfloat16" or "int8".
    """
    if precision == "float32" or "BF16" in core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        return precision
    if precision == "bfloat16":
        return "float32"
    random = np.random.default_rng(0)
    values = random.standard_normal((16, 768), np.float32)
    weights = random.integers(-127, 128, (768, 768)).astype(np.int8)
    x = op.parameter([-1, 768], np.float32)
    matrix = op.multiply(op.convert(op.constant(weights), np.float32), op.constant(np.ones((768, 1), np.float32)))
    model = ov.Model([op.matmul(x, matrix, False, True)], [x], "product in eight bits")
    result = core().compile_model(model, "CPU", {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 128})(values)[0]
    exact = values @ weights.T.astype(np.float32)
    return "float32" if np.abs(result - exact).max() < 1e-4 * np.abs(exact).max() else precision


@functools.cache
def _note_float32(precision):
    """Say once in this process that the processor computes in float32 where another precision is chosen."""
    if computed_in(precision) != precision:
        _log.warning("The processor here cannot compute in %s; it computes in float32.", precision)


class OpenVINOEngine:
    """Runs the graph of a model in OpenVINO. Calls from several threads wait for each other: each uses all cores.

    Calls that use one thread do not wait for those that use all, which take longer.

    Args:
        model: `BertModel` or `StoredModel`. The model.
        precision: str. "float32", "bfloat16" or "int8".
        shares_cores: bool, or callable () -> bool that is asked at every pass. Whether other work of the process waits
            for the cores. Short passes then use one thread, in a graph of their own.
        room: as that of `CompiledGraphs`.

    Attributes:
        graphs: `CompiledGraphs`.
    """

    def __init__(
        self,
        model: RunnableModel,
        precision: str,
        shares_cores: bool | Callable[[], bool] = False,
        room: Callable[[int], contextlib.AbstractContextManager] = contextlib.nullcontext,
    ) -> None:
        _note_float32(precision)
        self._shares_cores = shares_cores if callable(shares_cores) else lambda: shares_cores
        # The head is seldom computed at more than a few positions.
        self._one_thread = {_ONE_THREAD, _MLM_HEAD} if shares_cores else {_ONE_THREAD}
        self._model = model
        self._memory = {one_thread: _ReusedMemory() for one_thread in (False, True)}
        self.graphs = CompiledGraphs(self._graph_bytes, self._has_one_thread, room, self._free)
        self._precision, self._eight_bits = precision, precision == "int8"
        # Rounding the products of the head to bfloat16 changes more first predictions than rounding those of the
        # encoder does (`benchmarks/precision.py`), so the head is computed in float32, in a graph of its own.
        self._mlm_apart = precision == "bfloat16" and "mlm" in model.bert_heads

    @property
    def nbytes(self) -> int:
        """About how many bytes the compiled graphs and the memory for attention maps need."""
        return self.graphs.nbytes + sum(memory.nbytes for memory in self._memory.values())

    def runs_aside(self, tokens: int) -> bool:
        """Whether a pass over one input of T tokens uses one thread, and so waits for no pass that uses all."""
        return self._shares_cores() and tokens <= _SHORT

    def _has_one_thread(self, kind):
        return kind in self._one_thread

    def _free(self, kind, graph):
        self._memory[self._has_one_thread(kind)].drop()
        free_workspace(graph.request if isinstance(graph, _Request) else graph)

    def _graph_bytes(self, kind):
        config = self._model.bert_config
        values = parameter_counts(config, self._model.bert_heads)["total"]
        share = config.vocab_size * config.embedding_width / values if kind in _HEADS else 1  # the token table
        return int(share * (self._model.nbytes + _PACKED_BYTES * values))

    def run(self, arrays: dict[str, np.ndarray], outputs: tuple[str, ...]) -> dict[str, Any]:
        """Run one forward pass as `Runtime.run`, with checked arrays."""
        rows, tokens = arrays["token_ids"].shape
        positions = _positions(arrays, outputs)
        inputs = [arrays[name] for name in INPUTS]
        inputs += [positions, _rows(outputs, rows)]
        kind = self._kind(outputs, rows, tokens)
        with self._request(kind) as request:
            maps = self._memory_of_maps(kind, request, rows, tokens)
            request.run(inputs, maps)
            # Copies, because the next call overwrites the memory of the request.
            names = {_LOGITS if name == "mlm_logits_all" else name for name in outputs} - {"attentions"}
            if self._mlm_apart and _LOGITS in names:
                names = names - {_LOGITS} | {"mlm_states"}
            results = {name: request.copies(name) for name in names}
        results["attentions"] = maps
        if "mlm_states" in results:
            results[_LOGITS] = [self._mlm_logits(results["mlm_states"][0])]
        if "mlm_logits_all" in outputs:
            first = positions.shape[1] - tokens
            results["mlm_logits_all"] = [results[_LOGITS][0][:, first:]]
            results[_LOGITS] = [results[_LOGITS][0][:, :first]]
        return {name: results[name] if name in _LISTS else results[name][0] for name in outputs}

    def _mlm_logits(self, states):
        """[B, P, H] -> [B, P, V], in float32"""

        def make():
            return _compile(build_mlm_head(self._model), self._settings(_MLM_HEAD, False))

        with self.graphs.using(_MLM_HEAD, make) as request:
            logits = request.infer([states.reshape(-1, states.shape[-1])])[0]  # a copy
            return logits.reshape(*states.shape[:2], -1)

    def read_mlm(self, states: np.ndarray, answers: np.ndarray, top_k: int) -> tuple[np.ndarray, ...]:
        """Run the MLM head as `Runtime.read_mlm`."""

        def make():
            rounds_inputs = self._rounds_inputs(_MLM_READING)
            graph = build_mlm_reading(self._model, self._eight_bits, rounds_inputs)
            return _compile(graph, self._settings(_MLM_READING, rounds_inputs))

        with self.graphs.using(_MLM_READING, make) as request:
            results = request.infer([states, answers, np.array(top_k, np.int32)])
            return tuple(results[index] for index in range(5))  # copies

    def _kind(self, outputs, rows, tokens):
        if any(name in VECTORS for name in outputs):
            return "vectors"
        if rows * tokens <= _SHORT:
            if self._shares_cores():
                return _ONE_THREAD
            if self._eight_bits and has_tiles():
                return "short"
        if "attentions" in outputs or rows * tokens <= _SMALL and "plain" not in self.graphs:
            return "maps"
        window = self._model.bert_config.local_attention
        return "blocks" if window and tokens > _LONG * window else "plain"

    def _request(self, kind):
        def make():
            rounds_inputs = self._rounds_inputs(kind)
            in_graph = "maps" if kind in _SHORT_KINDS else kind
            graph = build(self._model, in_graph, self._eight_bits, rounds_inputs, self._mlm_apart)
            return _Request(*graph, self._settings(kind, rounds_inputs))

        return self.graphs.using(kind, make)

    def _rounds_inputs(self, kind):
        """Whether a graph computes products in eight bits; longer inputs are faster in tiles of bfloat16."""
        return self._eight_bits and (kind in _SHORT_KINDS or not has_tiles())

    def _settings(self, kind, rounds_inputs):
        in_float32 = rounds_inputs and has_tiles() or self._mlm_apart and kind in _HEADS
        settings = {
            "INFERENCE_PRECISION_HINT": "f32" if in_float32 else _HINTS[self._precision],
            # How many values of the input of a product with an eight-bit matrix share a scale; with 0 such products are
            # computed in float, from the dequantized values.
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": _group_size(self._model) if rounds_inputs else 0,
            "PERFORMANCE_HINT": "LATENCY",
        }
        return settings | ({"INFERENCE_NUM_THREADS": 1} if self._has_one_thread(kind) else {})

    def _memory_of_maps(self, kind, request, rows, tokens):
        layers = len(request.result_indices.get("attentions", ()))
        if not layers:
            return []
        shape = (layers, rows, self._model.bert_config.num_attention_heads, tokens, tokens)
        return list(self._memory[self._has_one_thread(kind)].take(shape))


def _group_size(model):
    names = [parameter.name for parameter in parameter_spec(model.bert_config, model.bert_heads)]
    return group_size(model.bert_config, names)


def _compile(graph, settings):
    return core().compile_model(graph, "CPU", settings).create_infer_request()


def free_workspace(request: ov.InferRequest) -> None:
    """Free the memory for intermediate results that a compiled graph keeps for its next run."""
    # While a request of the same graph runs there is nothing to free, and OpenVINO raises an error.
    with contextlib.suppress(RuntimeError):
        request.get_compiled_model().release_memory()


class _Request:
    """A compiled graph, and the memory that it reads and writes.

    Binding an array to an OpenVINO request costs more than copying a small array. So the inputs are copied into arrays
    that are bound already. The attention maps are too large to copy, so the request writes them directly into arrays
    for the caller. Arrays are bound again only if their shape or memory changes.
    """

    def __init__(self, graph, result_indices, settings):
        self.result_indices, self.request = result_indices, _compile(graph, settings)
        self._inputs, self._bound = [], None

    def run(self, inputs, maps):
        """Run the graph.

        Args:
            inputs: list of arrays. The inputs of the graph, in its order.
            maps: list of arrays, one per layer. The memory for the attention maps; empty if the graph has none.
        """
        if [array.shape for array in self._inputs] != [array.shape for array in inputs]:
            self._inputs = [np.empty(array.shape, array.dtype) for array in inputs]
            for index, array in enumerate(self._inputs):
                self.request.set_input_tensor(index, ov.Tensor(array, shared_memory=array.size > 0))
        for bound_input, array in zip(self._inputs, inputs):
            bound_input[...] = array
        bound = (maps[0].ctypes.data, maps[0].shape) if maps else None
        if bound != self._bound:
            for index, array in zip(self.result_indices["attentions"], maps):
                self.request.set_output_tensor(index, ov.Tensor(array, shared_memory=True))
            self._bound = bound
        # Not `infer`, which creates an array for every output, requested or not.
        try:
            self.request.start_async()
        finally:  # an interrupt must not leave the request running
            self.request.wait()

    def copies(self, output):
        return [self.request.get_output_tensor(index).data.copy() for index in self.result_indices[output]]


class _ReusedMemory:
    """Memory for results, reused when nobody holds the last result: new memory pages cost more time than writing."""

    def __init__(self):
        self._raw, self._start, self._lock = np.empty(0, np.float32), 0, threading.Lock()

    @property
    def nbytes(self):
        return self._raw.nbytes

    def take(self, shape):
        """A float32 array of this shape, with arbitrary values."""
        size = math.prod(shape)
        with self._lock:
            free = sys.getrefcount(self._raw) <= 2  # this attribute and the argument of the call
            if not free or not size + _ALIGNMENT <= self._raw.size <= 2 * size + _ALIGNMENT:
                self._raw = np.empty(size + _ALIGNMENT, np.float32)
                self._start = -self._raw.ctypes.data % (4 * _ALIGNMENT) // 4
            return self._raw[self._start : self._start + size].reshape(shape)

    def drop(self):
        """Keep no memory for the next result."""
        with self._lock:
            self._raw = np.empty(0, np.float32)


@functools.lru_cache(64)
def _rows(outputs, rows):
    """The input "rows" of the graph: the number of requested rows of each output in `FLAGS`, int64."""
    return np.array([rows if name in outputs else 0 for name in FLAGS], np.int64)


def _positions(arrays, outputs):
    """The positions of the logits, int32 [B, P]: the requested positions, then all positions if all are requested."""
    rows, tokens = arrays["token_ids"].shape
    parts = [arrays["mask_positions"]] if _LOGITS in outputs else []
    if "mlm_logits_all" in outputs:
        parts.append(np.broadcast_to(np.arange(tokens, dtype=np.int32), (rows, tokens)))
    return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0), np.int32)
