"""Code that all layers share: serialization, initializer, memory of weights, activations and layer normalization.

B batch, T tokens, H hidden size, N heads, D head size, V vocabulary, P predicted positions.
"""

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

#: A tensor of the Keras backend.
Tensor = Any
#: The shape of a tensor; None for an axis of unknown size.
Shape = tuple[int | None, ...]

register = keras.saving.register_keras_serializable(package="bert_tf")

_ALIGNMENT = 64  # bytes; TensorFlow's kernels read from such addresses
_LARGE = 1 << 18  # bytes from which TensorFlow's allocator on x86 keeps freed memory

_VALUES_FOLLOW = contextvars.ContextVar("values_follow", default=False)


@contextlib.contextmanager
def values_follow() -> Iterator[None]:
    """Initialize the weights of layers created in this block with zeros.

    It is for models whose weights are then read from a file: drawing hundreds of millions of random numbers would take
    longer than reading the file.
    """
    token = _VALUES_FOLLOW.set(True)
    try:
        yield
    finally:
        _VALUES_FOLLOW.reset(token)


def aligned_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Return zeros at an address that TensorFlow can use, float32. They take memory when they are written."""
    size = 4 * int(np.prod(shape))
    memory = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(np.float32).reshape(shape)


def shared_tensor(values: np.ndarray) -> Tensor:
    """Return a tensor for a variable. In TensorFlow it shares the memory of `values`, if they are large.

    That memory goes back to the system when the model is dropped. TensorFlow's allocator on x86 (that of oneDNN) keeps
    all memory that it ever had for large tensors: of a dropped BERT-base, 370 MB.

    Args:
        values: float32, from `aligned_zeros`. Do not change them afterwards.

    Returns:
        A TensorFlow tensor; `values` themselves with another backend, or if they are small.
    """
    if keras.backend.backend() != "tensorflow" or values.nbytes < _LARGE:
        return values
    import tensorflow as tf

    return tf.experimental.dlpack.from_dlpack(values.__dlpack__())


@register
class ZerosUntilRead(keras.initializers.Zeros):
    """Zeros for a weight that is read from a file later. Until then it takes no memory."""

    def __call__(self, shape: tuple[int, ...], dtype: Any = None) -> Tensor:
        if keras.backend.standardize_dtype(dtype) != "float32":
            return super().__call__(shape, dtype)
        return keras.ops.convert_to_tensor(shared_tensor(aligned_zeros(tuple(shape))))


def initializer(stddev: float) -> keras.initializers.Initializer:
    """Return the truncated normal initializer with this standard deviation (Devlin et al. 2018, `modeling.py`)."""
    if _VALUES_FOLLOW.get():
        return ZerosUntilRead()
    return keras.initializers.TruncatedNormal(stddev=stddev)


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """Return an activation function by its name in `BertConfig.hidden_act`, or any of Keras."""
    own = {"gelu": exact_gelu, "gelu_new": tanh_gelu, "gelu_10": clipped_gelu, "quick_gelu": quick_gelu}
    return own.get(name) or keras.activations.get(name)


def named_dense(name: str, layer: keras.layers.Dense) -> dict[str, keras.Variable]:
    """Return the variables of a dense layer by their names in Hugging Face's files."""
    return {f"{name}.weight": layer.kernel, f"{name}.bias": layer.bias}


def exact_gelu(x: Tensor) -> Tensor:
    """The exact GELU, computed with erf."""
    return keras.ops.gelu(x, approximate=False)


def tanh_gelu(x: Tensor) -> Tensor:
    """The tanh approximation of GELU."""
    return keras.ops.gelu(x, approximate=True)


def clipped_gelu(x: Tensor) -> Tensor:
    """The exact GELU, clipped to -10 and 10 (Wu et al. 2020, for eight-bit models)."""
    return keras.ops.clip(exact_gelu(x), -10.0, 10.0)


def quick_gelu(x: Tensor) -> Tensor:
    """The approximation of GELU by x sigmoid(1.702 x) (Hendrycks and Gimpel 2016)."""
    return x * keras.ops.sigmoid(1.702 * x)


def normalise(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """Layer normalization of a float32 tensor [..., H] over its last axis."""
    ops = keras.ops
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    # `rsqrt` replaces a division of the whole tensor by a multiplication.
    return centred * ops.rsqrt(variance + epsilon) * gamma + beta


@register
class Dense(keras.layers.Dense):
    """Keras' `Dense`, whose LoRA update is computed from the inputs: x W + (x A) B (Hu et al. 2021, section 4.1).

    Keras adds A B to the matrix first, so that the gradient of the whole matrix is computed and kept in each training
    step. Here W is frozen and has no gradient, which is a third of the products of a step.
    """

    def call(self, inputs: Tensor, training: bool | None = None) -> Tensor:
        if not self.lora_enabled:
            return super().call(inputs, training=training)
        ops = keras.ops
        update = ops.matmul(ops.matmul(inputs, self.lora_kernel_a), self.lora_kernel_b)
        x = ops.matmul(inputs, self._kernel) + self.lora_alpha / self.lora_rank * update
        if self.bias is not None:
            x = ops.add(x, self.bias)
        return x if self.activation is None else self.activation(x)

    def quantize(self, mode: str | None = None, type_check: bool = True, config: Any = None) -> None:
        """As Keras' `Dense` is quantized, which refuses subclasses; a quantized layer is called as Keras calls it."""
        super().quantize(mode, type_check=False, config=config)


@register
class LayerNorm(keras.layers.Layer):
    """Layer normalization over the last axis, computed in float32 for every compute dtype.

    Args:
        epsilon: float. The number added to the variance before the square root.
        bias: bool. Whether a learned bias is added.

    Call arguments:
        x: float [..., H].

    Returns:
        [..., H] in the dtype of `x`.
    """

    def __init__(self, epsilon: float, bias: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon, self.has_bias = epsilon, bias
        self.normalise = normalise

    def build(self, input_shape: Shape) -> None:
        width = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=width, initializer="ones", autocast=False)
        if self.has_bias:
            self.beta = self.add_weight(name="beta", shape=width, initializer="zeros", autocast=False)
        else:
            self.beta = np.zeros(width, np.float32)

    def call(self, x: Tensor) -> Tensor:
        values, gamma, beta = (keras.ops.cast(tensor, "float32") for tensor in (x, self.gamma, self.beta))
        return keras.ops.cast(self.normalise(values, gamma, beta, self.epsilon), x.dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon, "bias": self.has_bias}
