"""The OpenVINO engine: at most three compiled graphs, for every batch, length and set of outputs.

B batch, T tokens, P predicted positions.
"""

import functools
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
        self._model, self._lock, self._compiled, self._memory = model, threading.Lock(), {}, _Reused()
        self._settings = {"INFERENCE_PRECISION_HINT": _HINTS[precision], "PERFORMANCE_HINT": "LATENCY"}

    def run(self, arrays, outputs):
        """As `Runtime.run`, with checked arrays."""
        rows, tokens = arrays["token_ids"].shape
        positions, asked = _positions(arrays, outputs)
        flags = np.array([rows if name in outputs else 0 for name in FLAGS], np.int64)
        inputs = [arrays["token_ids"], arrays["segment_ids"], arrays["padding_mask"], positions, flags]
        with self._lock:
            request, places = self._request(self._kind(outputs, rows * tokens))
            maps = self._bind_maps(request, places.get("attentions", ()), rows, tokens)
            request.infer(inputs, share_inputs=True, share_outputs=True)
            # Copied, because the next call overwrites the request's own memory.
            found = {
                name: [request.get_output_tensor(place).data.copy() for place in places[name]]
                for name in places
                if name in outputs and name in FLAGS or name == "mlm_logits" and asked
            }
        found["attentions"] = maps
        if "mlm_logits_all" in outputs:
            found["mlm_logits_all"] = [found["mlm_logits"][0][:, asked - tokens :]]
            found["mlm_logits"] = [found["mlm_logits"][0][:, : asked - tokens]]
        return {name: found[name] if name in _LISTS else found[name][0] for name in outputs}

    def _kind(self, outputs, size):
        if any(name in VECTORS for name in outputs):
            return "vectors"
        if "attentions" in outputs or size <= _SMALL and "plain" not in self._compiled:
            return "maps"
        return "plain"

    def _request(self, kind):
        if kind not in self._compiled:
            graph, places = build(self._model, kind)
            compiled = _core().compile_model(graph, "CPU", self._settings)
            self._compiled[kind] = compiled.create_infer_request(), places
        return self._compiled[kind]

    def _bind_maps(self, request, places, rows, tokens):
        """Lets the graph write its maps straight into arrays for the caller: they are too large to copy."""
        if not places:
            return []
        shape = len(places), rows, self._model.bert_config.num_attention_heads, tokens, tokens
        maps = list(self._memory.take(shape))
        for place, array in zip(places, maps):
            request.set_output_tensor(place, ov.Tensor(array, shared_memory=True))
        return maps


class _Reused:
    """Memory for results, given out again once nobody holds the last: fresh pages cost more than the
    writing."""

    def __init__(self):
        self._raw = np.empty(0, np.float32)

    def take(self, shape):
        """A float32 array of this shape with any content."""
        size = int(np.prod(shape))
        free = sys.getrefcount(self._raw) <= 2  # this attribute and the call's own argument
        if not free or not size + _ALIGNMENT <= self._raw.size <= 2 * size + _ALIGNMENT:
            self._raw = np.empty(size + _ALIGNMENT, np.float32)
        start = -self._raw.ctypes.data % (4 * _ALIGNMENT) // 4
        return self._raw[start : start + size].reshape(shape)


def _positions(arrays, outputs):
    """Where logits are computed, int32 [B, P] (the asked for, then all if all are asked for), and P."""
    rows, tokens = arrays["token_ids"].shape
    parts = [np.zeros((rows, 0), np.int32)]
    if "mlm_logits" in outputs:
        parts.append(arrays["mask_positions"])
    if "mlm_logits_all" in outputs:
        parts.append(np.broadcast_to(np.arange(tokens, dtype=np.int32), (rows, tokens)))
    positions = np.ascontiguousarray(np.concatenate(parts, axis=1))
    return positions, positions.shape[1]
