"""`Runtime` checks a batch, runs it on an engine and returns NumPy arrays.

B batch, T tokens, P predicted positions.
"""

import contextlib
import glob
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from bert_tf.errors import RuntimeInputError
from bert_tf.model_outputs import INPUTS, NEEDS, OUTPUTS
from bert_tf.runtime.compiled_graphs import CompiledGraphs
from bert_tf.runtime.weights import RunnableModel, keras_model

ENGINES = ("auto", "openvino", "tensorflow")
PRECISIONS = ("float32", "bfloat16", "int8")
# The device files of NVIDIA and AMD GPUs; of a GPU under the Windows Subsystem for Linux.
_GPU_DEVICES = ("/dev/nvidia[0-9]*", "/dev/kfd", "/dev/dxg")


class Runtime:
    """Fast forward passes of a model. It can be used from several threads.

    Args:
        model: `BertModel` or `StoredModel`. Its weights are read at the first `run`; after a change of the weights,
            create another `Runtime`. The TensorFlow engine builds the Keras model of a `StoredModel`.
        precision: str. "float32", "bfloat16" or "int8" (eight-bit matrix products, only with OpenVINO; see
            docs/explanation/inference.md for their speed and accuracy).
        engine: str. "openvino", "tensorflow" or "auto". "auto" is OpenVINO if it is installed, there is no GPU and it
            supports the model's activation and encoder layer; otherwise TensorFlow, or the backend that KERAS_BACKEND
            names (torch, jax).
        shares_cores: bool, or callable () -> bool that is asked at every pass. Whether the process has other work for
            the cores, as a server with several visitors has. OpenVINO then runs short inputs on one thread: this takes
            longer, but less processor time in all, and they wait for no longer pass.
        room: callable (bytes) -> context manager, in which OpenVINO compiles a graph that needs about so many bytes. A
            server makes room there.

    Attributes:
        precision: str. The precision.
        engine: str. The engine that is used, never "auto".

    Raises:
        RuntimeInputError: the precision or engine is unknown, or the engine cannot run this model.

    Example:
        >>> runtime = Runtime(build_encoder(BertConfig.tiny(vocab_size=100), outputs=("sequence_output",)))
        >>> ids = np.ones((1, 3), "int32")
        >>> batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
        >>> runtime.run(batch, ("sequence_output",))["sequence_output"].shape
        (1, 3, 128)
    """

    def __init__(
        self,
        model: RunnableModel,
        precision: str = "float32",
        engine: str = "auto",
        shares_cores: bool | Callable[[], bool] = False,
        room: Callable[[int], contextlib.AbstractContextManager] = contextlib.nullcontext,
    ) -> None:
        if precision not in PRECISIONS:
            raise RuntimeInputError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}.")
        if engine not in ENGINES:
            raise RuntimeInputError(f"engine must be one of {', '.join(ENGINES)}, not {engine!r}.")
        self.precision = precision
        self.engine = _choose(model, engine, precision)
        self._model, self._lock, self._shares_cores, self._room = model, threading.Lock(), shares_cores, room
        self._loaded_engine: Any = None

    def run(self, batch: Mapping[str, np.ndarray], outputs: Iterable[str]) -> dict[str, Any]:
        """Run one forward pass.

        Args:
            batch: dict of int32 arrays. `token_ids`, `segment_ids` and `padding_mask` (1 for tokens, 0 for padding)
                are [B, T]; `mask_positions`, needed for "mlm_logits", is [B, P].
            outputs: iterable of str. The names of outputs (see `bert_tf.models`).

        Returns:
            Dict of output name -> float32 array, or list with one array per layer, with the B, T and P of the batch.

        Raises:
            RuntimeInputError: an array is missing, does not fit the others, holds an id out of range or is longer
                than the model's limit; or an output does not exist or needs a head that the model does not have.
        """
        outputs = tuple(outputs)
        self._check_outputs(outputs)
        return self._load_engine().run(self._checked(batch, outputs), outputs)

    def read_mlm(self, states: np.ndarray, answers: np.ndarray, top_k: int) -> tuple[np.ndarray, ...]:
        """Run the MLM head on any hidden states and summarize its distributions, which over 30,000 tokens are large.

        Args:
            states: float32 [P, S, H]. S hidden states of each of P positions. In a causal model they are those of the
                position's neighbour (see `MaskedLMHead.read`).
            answers: int [P]. One token id for each position, followed through all its states; -1 for the likeliest
                token of its last state.
            top_k: int. K, the number of predictions, at most V.

        Returns:
            Five arrays: the likeliest ids, int32 [P, S, K], and their probabilities, float32 [P, S, K], in descending
            order and equal ones in the order of their ids; entropies, float32 [P, S], in nats; ranks of the answers,
            int32 [P, S], from 1; probabilities of the answers, float32 [P, S].

        Raises:
            RuntimeInputError: the model has no MLM head.
        """
        self._check_outputs(("mlm_logits",))
        states, answers = np.ascontiguousarray(states, np.float32), np.ascontiguousarray(answers, np.int32)
        return self._load_engine().read_mlm(states, answers, top_k)

    def warm(self, outputs: Iterable[str], length: int = 16, batch: int = 1, positions: int = 1) -> None:
        """Load the engine and prepare it for batches of this shape, by one forward pass.

        Args:
            outputs: iterable of str. The outputs to prepare.
            length: int. The length T.
            batch: int. The batch size B.
            positions: int. The number P of predicted positions.
        """
        arrays = {name: np.zeros((batch, length), np.int32) for name in ("token_ids", "segment_ids")}
        arrays["padding_mask"] = np.ones((batch, length), np.int32)
        arrays["mask_positions"] = np.zeros((batch, positions), np.int32)
        self.run(arrays, outputs)

    def runs_aside(self, tokens: int) -> bool:
        """Whether a pass over one input of so many tokens may run while another thread runs a longer one."""
        return self.engine == "openvino" and self._load_engine().runs_aside(tokens)

    @property
    def nbytes(self) -> int:
        """About how many bytes the engine needs beside the weights of the model; 0 before the first pass."""
        return 0 if self._loaded_engine is None else self._loaded_engine.nbytes

    @property
    def graphs(self) -> CompiledGraphs | None:
        """The compiled graphs of OpenVINO; None before the first pass, and with other engines."""
        return getattr(self._loaded_engine, "graphs", None)

    def _load_engine(self):
        if self._loaded_engine is not None:
            return self._loaded_engine
        # Before the lock: while the Keras model is built other threads may run this model (`engine_unused`), and a
        # thread that waits here for the lock would keep the model from the one that builds.
        model = None if self.engine == "openvino" else keras_model(self._model)
        with self._lock:
            if self._loaded_engine is None:
                if model is None:
                    from bert_tf.runtime.openvino_engine import OpenVINOEngine

                    self._loaded_engine = OpenVINOEngine(self._model, self.precision, self._shares_cores, self._room)
                else:
                    self._loaded_engine = _keras_engine(model, self.precision)
            return self._loaded_engine

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
            raise RuntimeInputError(f"No outputs are requested; choose from {', '.join(OUTPUTS)}.")

    def _checked(self, batch, outputs):
        names = (*INPUTS, "mask_positions") if "mlm_logits" in outputs else INPUTS
        missing = [name for name in names if name not in batch]
        if missing:
            raise RuntimeInputError(f"The batch lacks {', '.join(missing)}; it has: {', '.join(batch) or 'nothing'}.")
        arrays = {name: np.ascontiguousarray(batch[name], np.int32) for name in names}
        shape = arrays["token_ids"].shape
        for name, array in arrays.items():
            fits = array.shape == shape if name != "mask_positions" else array.ndim == 2 and len(array) == shape[0]
            if len(shape) != 2 or 0 in array.shape or not fits:
                raise RuntimeInputError(
                    f"{name} has shape {list(array.shape)}, token_ids {list(shape)}; the arrays must be "
                    "[B, T], mask_positions [B, P], and none of them empty."
                )
        config = self._model.bert_config
        if shape[1] > config.max_tokens:
            raise RuntimeInputError(
                f"The batch is {shape[1]} tokens long; this model reads at most {config.max_tokens}."
            )
        limits = {
            "token_ids": config.vocab_size,
            "segment_ids": max(2, config.type_vocab_size),  # ignored if the model has fewer than 2 segments
            "padding_mask": 2,
            "mask_positions": shape[1],
        }
        for name, array in arrays.items():
            # Without this check an engine would read outside the table, or silently read zeros. As an unsigned
            # integer a negative number is large, so one comparison detects both errors.
            if array.view(np.uint32).max() >= limits[name]:
                raise RuntimeInputError(
                    f"{name} must be 0 to {limits[name] - 1}; here it is {array.min()} to {array.max()}."
                )
        return arrays


def _keras_engine(model, precision):
    """The engine that runs a Keras model on Keras' backend."""
    import keras

    if keras.backend.backend() == "tensorflow":
        from bert_tf.runtime.tensorflow_engine import TensorFlowEngine

        return TensorFlowEngine(model, precision)
    from bert_tf.runtime.keras_engine import KerasEngine

    return KerasEngine(model, precision)


def _choose(model, engine, precision):
    """The engine to use: OpenVINO unless there is an obstacle."""
    obstacle = None if engine == "tensorflow" else _obstacle(model, engine)
    if obstacle and engine == "openvino":
        raise RuntimeInputError(f'The OpenVINO engine cannot be used: {obstacle}. Use engine="tensorflow".')
    chosen = "tensorflow" if obstacle or engine == "tensorflow" else "openvino"
    if precision == "int8" and chosen == "tensorflow":
        reason = f", and OpenVINO cannot be used: {obstacle}" if obstacle else ""
        raise RuntimeInputError(f"int8 needs the OpenVINO engine{reason}. Choose float32 or bfloat16.")
    return chosen


def _obstacle(model, engine):
    """The reason why OpenVINO cannot be used, or None; the quickest checks come first."""
    try:
        from bert_tf.runtime.graphs.bert import ACTIVATIONS, GRAPHS
    except ImportError as error:
        return f"it is not installed ({error})"
    if model.bert_config.hidden_act not in ACTIVATIONS:
        return f"it has no activation {model.bert_config.hidden_act!r}"
    if model.bert_config.architecture.layer_class not in GRAPHS:
        return "it has no graph for this model's encoder layer"
    if engine == "auto" and _has_gpu():
        return "there is a GPU, and OpenVINO runs on the CPU only"
    return None


def fast_precision() -> str:
    """Return "bfloat16" if `Runtime` would use OpenVINO on a processor that computes in it, else "float32".

    Of the precisions that keep 99% of the first predictions it is the fastest (docs/explanation/inference.md).
    """
    return _computed_by_openvino("bfloat16") or "float32"


def actual_precision(precision: str) -> str:
    """Return the precision in which a `Runtime` of this precision computes on this machine.

    Args:
        precision: str. One of `PRECISIONS`.

    Returns:
        str. "float32" if OpenVINO would be used and the processor cannot compute in `precision`; else `precision`.
    """
    return precision if precision == "float32" else _computed_by_openvino(precision) or precision


def _computed_by_openvino(precision):
    """The precision in which OpenVINO computes; None where another engine is used."""
    if _has_gpu():
        return None
    try:
        from bert_tf.runtime.openvino_engine import computed_in
    except ImportError:
        return None
    return computed_in(precision)


def _has_gpu():
    """Whether TensorFlow sees a GPU; it is imported only if the system has the device file of one."""
    if not any(glob.glob(pattern) for pattern in _GPU_DEVICES):
        return False
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))
