"""The OpenVINO engine: at most three compiled graphs, for every batch, length and set of outputs.

B batch, T tokens, P predicted positions.
"""

import functools
import math
import sys
import threading

import numpy as np
import openvino as ov

from bert_tf.runtime.openvino_graph import FLAGS, VECTORS, build

_HINTS = {"float32": "f32", "bfloat16": "bf16"}
_LISTS = ("hidden_states", "attentions", *VECTORS)
_ALIGNMENT = 16  # floats: OpenVINO copies results into memory that is aligned worse than 64 bytes

# Up to this many tokens in a batch the maps cost no time: one graph, and one packing of the weights, then
# serves both those who want them and those who do not.
_SMALL = 256


@functools.cache
def _core():
    """OpenVINO itself, once for the whole process.

    On a processor with AMX each one gives the thread that makes it another stack for signals, and takes it away when
    it goes, in any order: after that the next signal, a Ctrl-C, would be the end of the process.
    """
    return ov.Core()


class OpenVINOEngine:
    """Runs a `BertModel`'s graph under OpenVINO. Calls from several threads take turns: each uses all the
    cores.

    Args: model: a `BertModel`. precision: "float32" or "bfloat16".
    """

    def __init__(self, model, precision):
        self._model, self._lock, self._requests, self._memory = model, threading.Lock(), {}, _Reused()
        self._settings = {"INFERENCE_PRECISION_HINT": _HINTS[precision], "PERFORMANCE_HINT": "LATENCY"}

    def run(self, arrays, outputs):
        """As `Runtime.run`, with checked arrays."""
        rows, tokens = arrays["token_ids"].shape
        positions = _positions(arrays, outputs)
        inputs = [arrays[name] for name in ("token_ids", "segment_ids", "padding_mask")]
        inputs += [positions, _rows(outputs, rows)]
        with self._lock:
            request = self._request(self._kind(outputs, rows * tokens))
            maps = self._memory_of_maps(request, rows, tokens)
            request.run(inputs, maps)
            # Copied, because the next call overwrites the request's own memory.
            found = {
                name: request.copies(name)
                for name in {"mlm_logits" if name == "mlm_logits_all" else name for name in outputs}
                if name != "attentions"
            }
        found["attentions"] = maps
        if "mlm_logits_all" in outputs:
            first = positions.shape[1] - tokens
            found["mlm_logits_all"] = [found["mlm_logits"][0][:, first:]]
            found["mlm_logits"] = [found["mlm_logits"][0][:, :first]]
        return {name: found[name] if name in _LISTS else found[name][0] for name in outputs}

    def _kind(self, outputs, size):
        if any(name in VECTORS for name in outputs):
            return "vectors"
        if "attentions" in outputs or size <= _SMALL and "plain" not in self._requests:
            return "maps"
        return "plain"

    def _request(self, kind):
        if kind not in self._requests:
            self._requests[kind] = _Request(self._model, kind, self._settings)
        return self._requests[kind]

    def _memory_of_maps(self, request, rows, tokens):
        layers = len(request.places.get("attentions", ()))
        if not layers:
            return []
        return list(self._memory.take((layers, rows, self._model.bert_config.num_attention_heads, tokens, tokens)))


class _Request:
    """A compiled graph, and the memory that it reads and writes.

    To tell OpenVINO of an array costs more than to copy a small one. So what goes in is copied into arrays that it
    knows, and it writes the maps, too large to copy, straight into arrays for the caller; it is told of either only
    where the shape or the memory is another than before.
    """

    def __init__(self, model, kind, settings):
        graph, self.places = build(model, kind)
        self._request = _core().compile_model(graph, "CPU", settings).create_infer_request()
        self._inputs, self._bound = [], None

    def run(self, inputs, maps):
        """Args: inputs: the graph's, in its order. maps: a list of arrays, one a layer, to write the maps into; none
        where the graph has none."""
        if [array.shape for array in self._inputs] != [array.shape for array in inputs]:
            self._inputs = [np.empty(array.shape, array.dtype) for array in inputs]
            for place, array in enumerate(self._inputs):
                self._request.set_input_tensor(place, ov.Tensor(array, shared_memory=array.size > 0))
        for known, array in zip(self._inputs, inputs):
            known[...] = array
        bound = (maps[0].ctypes.data, maps[0].shape) if maps else None
        if bound != self._bound:
            for place, array in zip(self.places["attentions"], maps):
                self._request.set_output_tensor(place, ov.Tensor(array, shared_memory=True))
            self._bound = bound
        # Not `infer`, which makes an array of every output, asked for or not.
        try:
            self._request.start_async()
        finally:  # an interrupt must not leave it running
            self._request.wait()

    def copies(self, output):
        return [self._request.get_output_tensor(place).data.copy() for place in self.places[output]]


class _Reused:
    """Memory for results, given out again once nobody holds the last: fresh pages cost more than the
    writing."""

    def __init__(self):
        self._raw, self._start = np.empty(0, np.float32), 0

    def take(self, shape):
        """A float32 array of this shape with any content."""
        size = math.prod(shape)
        free = sys.getrefcount(self._raw) <= 2  # this attribute and the call's own argument
        if not free or not size + _ALIGNMENT <= self._raw.size <= 2 * size + _ALIGNMENT:
            self._raw = np.empty(size + _ALIGNMENT, np.float32)
            self._start = -self._raw.ctypes.data % (4 * _ALIGNMENT) // 4
        return self._raw[self._start : self._start + size].reshape(shape)


@functools.lru_cache(64)
def _rows(outputs, rows):
    """The graph's input of that name: how many rows of every one of `FLAGS` are wanted, int64."""
    return np.array([rows if name in outputs else 0 for name in FLAGS], np.int64)


def _positions(arrays, outputs):
    """Where logits are computed, int32 [B, P]: first the positions asked for, then all, if all are asked for."""
    rows, tokens = arrays["token_ids"].shape
    parts = [arrays["mask_positions"]] if "mlm_logits" in outputs else []
    if "mlm_logits_all" in outputs:
        parts.append(np.broadcast_to(np.arange(tokens, dtype=np.int32), (rows, tokens)))
    return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0), np.int32)
