"""Muon, for the matrices inside the layers (Jordan et al. 2024; Liu et al. 2025, "Muon is scalable for LLM training",
arXiv 2502.16982, section 2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from bert_tf.training.optimizers.adamw import AdamW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


MOMENTUM = 0.95


class Muon(AdamW):
    """Muon for the matrices of attention and feed-forward; AdamW for all other variables.

    Muon orthogonalises the momentum of a matrix: it makes its singular values nearly equal, with five Newton-Schulz
    iterations of Keras. Embeddings, heads, biases and layer normalisation are trained by AdamW. Muon's updates have the
    size of AdamW's (a root mean square of 0.2 times the learning rate), so that one learning rate suits both.

    Args:
        schedule: as in `AdamW`.
        settings: as in `AdamW`.
        products: str. The dtype of the matrix products of the iterations; "bfloat16" is exact enough for them, and
            faster on some machines.
    """

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule | float,
        settings: Iterable[tuple[float, float]],
        products: str = "float32",
    ):
        super().__init__(schedule, settings)
        self.products = products
        self._keras = keras.optimizers.Muon()

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates the momentum of each variable, and AdamW's second moment for those that AdamW trains."""
        if self.built:
            return
        keras.optimizers.Optimizer.build(self, variables)
        self._momentums = [self.add_variable_from_reference(variable, name="momentum") for variable in variables]
        self._velocities = [
            None if is_inner_matrix(variable) else self.add_variable_from_reference(variable, name="velocity")
            for variable in variables
        ]

    def update_step(self, gradient: Any, variable: keras.Variable, learning_rate: Any) -> None:
        """Updates one variable; the gradient has the shape of the variable."""
        if self._velocities[self._get_variable_index(variable)] is not None:
            super().update_step(gradient, variable, learning_rate)
            return
        ops = keras.ops
        rate = self._decayed(variable, learning_rate)
        momentum = self._momentums[self._get_variable_index(variable)]
        self.assign(momentum, MOMENTUM * momentum + gradient)
        # Nesterov momentum.
        direction = gradient + MOMENTUM * momentum
        # Scaled before the cast: the iterations do not depend on the scale, and small numbers would lose digits.
        direction = ops.cast(direction / (ops.norm(direction) + 1e-7), self.products)
        orthogonal = ops.cast(self._keras.zeropower_via_newtonschulz5(direction, self._keras.ns_steps), variable.dtype)
        self.assign_sub(variable, ops.cast(rate, variable.dtype) * self._keras.lr_adjust(orthogonal))


def is_inner_matrix(variable: keras.Variable) -> bool:
    """Whether Muon trains this Keras variable, and not AdamW."""
    return variable.name == "kernel" and any(part in variable.path for part in ("/attention/", "/feed_forward/"))
