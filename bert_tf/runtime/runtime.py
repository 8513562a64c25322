"""`Runtime`: checks a batch, runs it on an engine, gives back NumPy arrays of the very shape asked for.

B batch, T tokens, P predicted positions.
"""

import threading

import numpy as np

from bert_tf.architectures import BERT
from bert_tf.errors import RuntimeInputError
from bert_tf.models import NEEDS, OUTPUTS

ENGINES = ("auto", "openvino", "tensorflow")
PRECISIONS = ("float32", "bfloat16")
INPUTS = ("token_ids", "segment_ids", "padding_mask", "mask_positions")


class Runtime:
    """Forward passes of a `BertModel` on the CPU, made ready once and then fast; safe from several threads.

    Args:
        model: a `BertModel`. Its weights are read at the first `run`: after changing them make another
        `Runtime`.
        precision: "float32", or "bfloat16" (up to twice as fast where the processor has it; see
        docs/inference.md).
        engine: "openvino", "tensorflow" or "auto": OpenVINO where it is installed, there is no GPU and it
            knows the model's activation and way of reading, otherwise TensorFlow.

    Attributes:
        precision, engine: what is used; `engine` is never "auto".

    Raises:
        RuntimeInputError: on an unknown precision or engine, or one that cannot run this model.
    """

    def __init__(self, model, precision="float32", engine="auto"):
        if precision not in PRECISIONS:
            raise RuntimeInputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}.")
        if engine not in ENGINES:
            raise RuntimeInputError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}.")
        self.precision = precision
        self.engine = _choose(model, engine)
        self._model, self._ready, self._lock = model, None, threading.Lock()

    def run(self, batch, outputs):
        """One forward pass.

        Args:
            batch: dict of int32 [B, T] arrays `token_ids`, `segment_ids`, `padding_mask` (1 real, 0 padding)
                and, for "mlm_logits", `mask_positions` [B, P].
            outputs: names of outputs (see `bert_tf.models`).

        Returns: dict name -> float32 array, or list of one array a layer, of the very B, T and P that went
        in.

        Raises:
            RuntimeInputError: on arrays that are missing, do not fit together, hold ids out of range or are
                longer than the model reads; on an output that does not exist or needs a head the model has
                not.
        """
        outputs = tuple(outputs)
        self._check_outputs(outputs)
        return self._loaded().run(self._checked(batch, outputs), outputs)

    def warm(self, outputs, length=16, batch=1, positions=1):
        """Loads the engine and makes ready what `run` will need for batches of this shape, by running one."""
        arrays = {name: np.zeros((batch, length), np.int32) for name in ("token_ids", "segment_ids")}
        arrays["padding_mask"] = np.ones((batch, length), np.int32)
        arrays["mask_positions"] = np.zeros((batch, positions), np.int32)
        self.run(arrays, outputs)

    def _loaded(self):
        with self._lock:
            if self._ready is None:
                if self.engine == "openvino":
                    from bert_tf.runtime.openvino_engine import OpenVINOEngine as Engine
                else:
                    from bert_tf.runtime.tensorflow_engine import TensorFlowEngine as Engine
                self._ready = Engine(self._model, self.precision)
            return self._ready

    def _check_outputs(self, outputs):
        for output in outputs:
            if output not in OUTPUTS:
                raise RuntimeInputError(f"There is no output {output!r}; choose from {', '.join(OUTPUTS)}.")
            missing = set(NEEDS.get(output, ())) - self._model.bert_heads
            if missing:
                raise RuntimeInputError(
                    f"Output {output!r} needs the {' and '.join(sorted(missing))} head, which this model does not have."
                )
        if not outputs:
            raise RuntimeInputError(f"No outputs asked for; choose from {', '.join(OUTPUTS)}.")

    def _checked(self, batch, outputs):
        names = INPUTS if "mlm_logits" in outputs else INPUTS[:3]
        missing = [name for name in names if name not in batch]
        if missing:
            raise RuntimeInputError(f"The batch lacks {', '.join(missing)}; it has: {', '.join(batch) or 'nothing'}.")
        arrays = {name: np.ascontiguousarray(batch[name], np.int32) for name in names}
        shape = arrays["token_ids"].shape
        for name, array in arrays.items():
            fits = array.shape == shape if name != "mask_positions" else array.ndim == 2 and len(array) == shape[0]
            if len(shape) != 2 or 0 in array.shape or not fits:
                raise RuntimeInputError(
                    f"{name} has shape {list(array.shape)}, token_ids {list(shape)}; wanted are "
                    "[B, T] for all of them, [B, P] for mask_positions, none of them empty."
                )
        config = self._model.bert_config
        if shape[1] > config.max_tokens:
            raise RuntimeInputError(
                f"The batch is {shape[1]} tokens long; this model reads at most {config.max_tokens}."
            )
        limits = {
            "token_ids": config.vocab_size,
            "segment_ids": max(2, config.type_vocab_size),  # not looked at where the model has fewer
            "padding_mask": 2,
            "mask_positions": shape[1],
        }
        for name, array in arrays.items():
            # Without this check an engine would read outside the table, or silently take zeros. Read as unsigned, a
            # negative number is a large one, so one comparison finds both.
            if array.view(np.uint32).max() >= limits[name]:
                raise RuntimeInputError(
                    f"{name} must be 0 to {limits[name] - 1}; here it is {array.min()} to {array.max()}."
                )
        return arrays


def _choose(model, engine):
    """The engine to use, OpenVINO's own obstacles looked at in the order of what they cost to find out."""
    if engine == "tensorflow":
        return engine
    obstacle = _obstacle(model, engine)
    if obstacle and engine == "openvino":
        raise RuntimeInputError(f'The OpenVINO engine cannot be used: {obstacle}. Use engine="tensorflow".')
    return "tensorflow" if obstacle else "openvino"


def _obstacle(model, engine):
    try:
        from bert_tf.runtime.openvino_graph import ACTIVATIONS
    except ImportError as error:
        return f"it is not installed ({error})"
    if model.bert_config.hidden_act not in ACTIVATIONS:
        return f"it has no activation {model.bert_config.hidden_act!r}"
    if model.bert_config.architecture.layer_class != BERT.layer_class:
        return "its graph computes BERT's encoder layer, and this model has another"
    if engine == "auto":
        import tensorflow as tf

        if tf.config.list_physical_devices("GPU"):
            return "there is a GPU, and it runs on the processor only"
    return None
