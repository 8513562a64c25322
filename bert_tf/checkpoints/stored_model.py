"""A model in memory as its files store it. Its Keras model is built when it is first asked for.

Forward passes (`bert_tf.runtime`) need only the settings and the weights, so this module imports neither TensorFlow
nor Keras before that.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from bert_tf.checkpoints.stored_tensor import StoredTensor, Weight
from bert_tf.config import BertConfig
from bert_tf.model_outputs import ALL_HEADS

if TYPE_CHECKING:  # it imports Keras
    from bert_tf.models import BertModel

_BLOCK_VALUES = 1 << 21
#: What encloses `engine_unused`; see `when_engine_unused`.
_AROUND: contextvars.ContextVar[Callable[[], contextlib.AbstractContextManager]] = contextvars.ContextVar(
    "around", default=contextlib.nullcontext
)
_KERAS_BYTES = 6  # for each value: four of its variable, and as measured half of that for the compiled functions


class StoredModel:
    """The settings and weights of a model. Several threads can use one object at once.

    Args:
        config: `BertConfig`. The settings.
        heads: iterable of str. The heads, some of `bert_tf.model_outputs.ALL_HEADS`.
        weights: dict of canonical name (see `checkpoints.tensor_names`) -> `Weight`. All tensors of these heads.

    Attributes:
        bert_config: `BertConfig`. The settings.
        bert_heads: frozenset of str. The heads.
        weights: dict of canonical name -> `Weight`.
    """

    def __init__(self, config: BertConfig, heads: frozenset[str], weights: Mapping[str, Weight]) -> None:
        self.bert_config, self.bert_heads, self.weights = config, frozenset(heads), dict(weights)
        self._model: BertModel | None = None
        self._model_used_at = -math.inf
        self._lock = threading.Lock()

    @functools.cached_property  # a server asks for it several times in each press
    def nbytes(self) -> int:
        """The bytes of the weights in memory."""
        return sum(weight.nbytes for weight in self.weights.values())

    @property
    def held_bytes(self) -> int:
        """About how many bytes the weights need, and the Keras model with its compiled functions, if it was built."""
        return self.nbytes + (0 if self._model is None else self._keras_bytes)

    @property
    def bytes_to_build(self) -> int:
        """About how many bytes more will be needed when the Keras model is built; 0 if it was."""
        return self._keras_bytes if self._model is None else 0

    @functools.cached_property
    def _keras_bytes(self):
        return _KERAS_BYTES * sum(math.prod(weight.shape) for weight in self.weights.values())

    @property
    def model(self) -> BertModel:
        """The Keras model with these weights in float32, built once."""
        model = self._model
        if model is None:
            with engine_unused(), self._lock:
                model = self._model
                if model is None:  # no other thread has built it in the meantime
                    with outside_of_graphs():
                        model = self._model = build_keras_model(self.bert_config, self.bert_heads, self.weights)
        self._model_used_at = time.monotonic()
        return model

    @property
    def model_used_at(self) -> float | None:
        """When the Keras model was asked for last, by `time.monotonic`; None if it is not built."""
        return None if self._model is None else self._model_used_at

    def drop_model(self) -> None:
        """Drop the Keras model. When it is asked for again it is built from the stored weights."""
        self._model = None


@contextlib.contextmanager
def when_engine_unused(around: Callable[[], contextlib.AbstractContextManager]) -> Iterator[None]:
    """Enclose each `engine_unused` block of this thread in the context manager that `around()` returns.

    A server can let other visitors use the engine of the model in the meantime.
    """
    token = _AROUND.set(around)
    try:
        yield
    finally:
        _AROUND.reset(token)


@contextlib.contextmanager
def engine_unused() -> Iterator[None]:
    """Enclose what TensorFlow does beside the engine: its import, building a Keras model, compiling or running a step.

    A block within another one adds nothing.
    """
    around = _AROUND.get()
    token = _AROUND.set(contextlib.nullcontext)
    try:
        with around():
            yield
    finally:
        _AROUND.reset(token)


@contextlib.contextmanager
def outside_of_graphs() -> Iterator[None]:
    """Create the variables of this block eagerly, also while TensorFlow traces a function that asks for them first.

    Otherwise they would belong to the graph of that function, and would not get the values assigned here.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    with tf.init_scope():
        yield


def build_keras_model(
    config: BertConfig, heads: Collection[str], weights: Mapping[str, Weight | StoredTensor], dtype: str = "float32"
) -> BertModel:
    """Build a Keras model and assign its weights one by one.

    Args:
        config: `BertConfig`. The settings.
        heads: collection of str. The heads.
        weights: dict of canonical name -> `Weight`, or `StoredTensor`, which is read when its turn comes.
        dtype: str. The Keras dtype or dtype policy of the model ("float32", "bfloat16", "mixed_bfloat16").

    Returns:
        `BertModel`, with an output for each head.

    Raises:
        CheckpointError: a tensor cannot be read, or a value is not finite.
    """
    from bert_tf.layers.common import values_follow
    from bert_tf.models import build_pretraining_model, named_variables
    from bert_tf.parameters import is_transposed

    heads = tuple(head for head in ALL_HEADS if head in heads)
    outputs = [f"{head}_logits" for head in heads if head != "pooler"]
    if not outputs:
        outputs = ["sequence_output", *(["pooled_output"] if "pooler" in heads else [])]
    with values_follow():
        model = build_pretraining_model(config, outputs=tuple(outputs), heads=heads, dtype=dtype)
    for name, variable in named_variables(model).items():
        _assign(variable, weights[name], is_transposed(name))
    return model


def _assign(variable, weight, transposed):
    """Assign a weight to a variable; it is converted to float32 in blocks of rows.

    Raises: ValueError if the shapes differ.
    """
    from bert_tf.layers.common import aligned_zeros, shared_tensor

    values = aligned_zeros(tuple(variable.shape))
    rows = values.T if transposed else values  # the matrices of Hugging Face's files are transposed
    if tuple(weight.shape) != rows.shape:
        raise ValueError(f"{variable.path} is {rows.shape}, and its weight is {weight.shape}.")
    is_whole = isinstance(weight, StoredTensor) and not weight.by_rows
    step = len(rows) if is_whole else max(1, _BLOCK_VALUES // max(1, math.prod(weight.shape[1:])))
    for start in range(0, len(rows), step):
        block = slice(start, min(start + step, len(rows)))
        rows[block] = weight.float32(block)
    variable.assign(shared_tensor(values))
