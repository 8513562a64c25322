"""The OpenVINO engine: one compiled graph for every batch, length and set of outputs.

B batch, T tokens, P predicted positions.
"""

import threading

import numpy as np
import openvino as ov

from bert_tf.runtime.openvino_graph import FLAGS, build

_HINTS = {"float32": "f32", "bfloat16": "bf16"}


class OpenVINOEngine:
    """Runs a `BertModel`'s graph under OpenVINO. Calls from several threads take turns: each uses all the cores.

    Args: model: a `BertModel`. precision: "float32" or "bfloat16".
    """

    def __init__(self, model, precision):
        graph, self._places = build(model)
        compiled = ov.Core().compile_model(graph, "CPU", {"INFERENCE_PRECISION_HINT": _HINTS[precision],
                                                          "PERFORMANCE_HINT": "LATENCY"})
        self._request, self._lock = compiled.create_infer_request(), threading.Lock()

    def run(self, arrays, outputs):
        """As `Runtime.run`, with checked arrays."""
        rows, tokens = arrays["token_ids"].shape
        positions, asked = _positions(arrays, outputs)
        flags = np.array([rows if name in outputs else 0 for name in FLAGS], np.int64)
        inputs = [arrays["token_ids"], arrays["segment_ids"], arrays["padding_mask"], positions, flags]
        with self._lock:
            self._request.infer(inputs, share_inputs=True, share_outputs=True)
            found = {name: [self._copied(place) for place in places]
                     for name, places in self._places.items() if name in outputs or name == "mlm_logits" and asked}
        if "mlm_logits_all" in outputs:
            found["mlm_logits_all"] = [found["mlm_logits"][0][:, asked - tokens:]]
            found["mlm_logits"] = [found["mlm_logits"][0][:, :asked - tokens]]
        return {name: found[name] if name in _LISTS else found[name][0] for name in outputs}

    def _copied(self, place):
        # The next call overwrites the request's own memory.
        return self._request.get_output_tensor(place).data.copy()


_LISTS = ("hidden_states", "attentions", "queries", "keys", "values")


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
