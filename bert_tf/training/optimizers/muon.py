"""Muon, for the matrices inside the layers (Jordan et al. 2024; Liu et al. 2025, "Muon is scalable for LLM training",
arXiv 2502.16982, section 2.2)."""

import keras

from bert_tf.training.optimizers.adamw import AdamW

MOMENTUM = 0.95


class Muon(AdamW):
    """The momentum of a matrix with its singular values made alike, for the matrices of attention and feed-forward; for
    all else (embeddings, heads, biases, layer normalisation) AdamW.

    Updates have the size of AdamW's (a root mean square of 0.2 times the rate), so that the two go by one learning
    rate. Singular values are made alike by five Newton-Schulz iterations, Keras' own.

    Args:
        schedule, settings: as `AdamW`. products: dtype of the iterations' matrix products; "bfloat16" is exact enough
            for them, where the machine is fast in it.
    """

    def __init__(self, schedule, settings, products="float32"):
        super().__init__(schedule, settings)
        self.products = products
        self._keras = keras.optimizers.Muon()

    def build(self, variables):
        """Makes a momentum of each variable, and AdamW's second moment for those that are not Muon's."""
        if self.built:
            return
        keras.optimizers.Optimizer.build(self, variables)
        self._momentums = [self.add_variable_from_reference(one, name="momentum") for one in variables]
        self._velocities = [
            None if is_inner_matrix(one) else self.add_variable_from_reference(one, name="velocity")
            for one in variables
        ]

    def update_step(self, gradient, variable, learning_rate):
        """One update of one variable; its gradient has its shape."""
        if self._velocities[self._get_variable_index(variable)] is not None:
            super().update_step(gradient, variable, learning_rate)
            return
        ops = keras.ops
        rate = self._decayed(variable, learning_rate)
        momentum = self._momentums[self._get_variable_index(variable)]
        self.assign(momentum, MOMENTUM * momentum + gradient)
        ahead = gradient + MOMENTUM * momentum
        # Scaled before it is narrowed: iterations do not depend on the size, and small numbers would lose digits.
        ahead = ops.cast(ahead / (ops.norm(ahead) + 1e-7), self.products)
        alike = ops.cast(self._keras.zeropower_via_newtonschulz5(ahead, self._keras.ns_steps), variable.dtype)
        self.assign_sub(variable, ops.cast(rate, variable.dtype) * self._keras.lr_adjust(alike))


def is_inner_matrix(variable):
    """Whether Muon itself, and not AdamW, trains this Keras variable."""
    return variable.name == "kernel" and any(part in variable.path for part in ("/attention/", "/feed_forward/"))
