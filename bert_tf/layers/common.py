"""What every BERT layer shares: the serialisation package, the initialiser, the activation, the norm.

B batch, T tokens, H hidden size, N heads, D head size, V vocabulary, P predicted positions.
"""

import contextlib
import contextvars

import keras

register = keras.saving.register_keras_serializable(package="bert_tf")


_VALUES_FOLLOW = contextvars.ContextVar("values_follow", default=False)


@contextlib.contextmanager
def values_follow():
    """Within this block layers start from zeros: their values are about to be read from a file, and
    drawing hundreds of millions of random numbers first would cost more than the reading."""
    token = _VALUES_FOLLOW.set(True)
    try:
        yield
    finally:
        _VALUES_FOLLOW.reset(token)


def initializer(stddev):
    """Truncated normal of the given standard deviation (Devlin et al. 2018, `modeling.py`)."""
    if _VALUES_FOLLOW.get():
        return keras.initializers.Zeros()
    return keras.initializers.TruncatedNormal(stddev=stddev)


def activation(name):
    """`gelu` is the exact one (erf); `gelu_new` the tanh approximation of the ALBERT family."""
    if name == "gelu":
        return exact_gelu
    if name == "gelu_new":
        return tanh_gelu
    return keras.activations.get(name)


def named_dense(name, layer):
    """The variables of a dense layer of this name in Hugging Face's files: dict name -> variable."""
    return {f"{name}.weight": layer.kernel, f"{name}.bias": layer.bias}


def exact_gelu(x):
    return keras.ops.gelu(x, approximate=False)


def tanh_gelu(x):
    return keras.ops.gelu(x, approximate=True)


def normalise(x, gamma, beta, epsilon):
    """Layer normalisation of a float32 tensor [..., H] over its last axis."""
    ops = keras.ops
    centred = x - ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
    # One multiplication by gamma / sigma instead of a division and a multiplication of the whole tensor.
    return centred * ops.rsqrt(variance + epsilon) * gamma + beta


@register
class LayerNorm(keras.layers.Layer):
    """Layer normalisation over the last axis with its statistics in float32, whatever the compute dtype.

    Args:
        epsilon: added to the variance before the root.

    Call arguments:
        x: float tensor [..., H].

    Returns: [..., H] in the dtype of `x`.
    """

    def __init__(self, epsilon, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.normalise = normalise

    def build(self, input_shape):
        width = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=width, initializer="ones", autocast=False)
        self.beta = self.add_weight(name="beta", shape=width, initializer="zeros", autocast=False)

    def call(self, x):
        wide, gamma, beta = (keras.ops.cast(one, "float32") for one in (x, self.gamma, self.beta))
        return keras.ops.cast(self.normalise(wide, gamma, beta, self.epsilon), x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
