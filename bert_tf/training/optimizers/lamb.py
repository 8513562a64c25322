"""LAMB, for batches of thousands of sequences (You et al. 2020, "Large Batch Optimization for Deep Learning",
algorithm 2; arXiv 1904.00962)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from bert_tf.training.optimizers.schedule import UNDECAYED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Lamb(keras.optimizers.Optimizer):
    """Adam's direction plus weight decay, scaled for each variable to the norm of the variable.

    Keras' LAMB applies the weight decay outside of that scaling, unlike the paper. As in the authors' code, the
    variables that never decay (`UNDECAYED`: biases, layer normalisation) are not scaled either.

    Args:
        schedule: as in `training.optimizers.adamw.AdamW`.
        settings: as in `training.optimizers.adamw.AdamW`.
        products: str. Has no effect; other optimisers use it.
        beta_1: float. The decay of the running mean of the gradients.
        beta_2: float. The decay of the running mean of the squared gradients.
        epsilon: float. Added to the denominator.
    """

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule | float,
        settings: Iterable[tuple[float, float]],
        products: str = "float32",
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
    ):
        super().__init__(schedule)
        self.settings = list(settings)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def build(self, variables: Sequence[keras.Variable]) -> None:
        """Creates the two moments of each variable."""
        if self.built:
            return
        super().build(variables)
        self._scaled = [variable.name not in UNDECAYED for variable in variables]
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])

    def update_step(self, gradient: Any, variable: keras.Variable, learning_rate: Any) -> None:
        """Updates one variable; the gradient has the shape of the variable."""
        ops = keras.ops
        index = self._get_variable_index(variable)
        factor, decay = self.settings[index]
        rate = ops.cast(learning_rate, variable.dtype) * factor
        gradient = ops.cast(gradient, variable.dtype)
        momentum = self._update_mean(self._momentums[index], gradient, self.beta_1)
        velocity = self._update_mean(self._velocities[index], ops.square(gradient), self.beta_2)
        step = ops.cast(self.iterations + 1, variable.dtype)
        # Bias correction, because the running means start from zero.
        first = momentum / (1 - ops.power(ops.cast(self.beta_1, variable.dtype), step))
        second = velocity / (1 - ops.power(ops.cast(self.beta_2, variable.dtype), step))
        direction = first / (ops.sqrt(second) + self.epsilon)
        if self._scaled[index]:
            value = ops.convert_to_tensor(variable)
            direction = direction + decay * value
            rate = rate * _trust_ratio(value, direction)
        self.assign_sub(variable, rate * direction)

    def _update_mean(self, mean, value, beta):
        new = beta * mean + (1 - beta) * value
        self.assign(mean, new)
        return new


def _trust_ratio(value, direction):
    """The norm of the variable divided by the norm of its direction; 1 if one of them is 0."""
    ops = keras.ops
    value_norm, direction_norm = (ops.sqrt(ops.sum(ops.square(tensor))) for tensor in (value, direction))
    both = ops.logical_and(value_norm > 0, direction_norm > 0)
    return ops.where(both, value_norm / ops.where(both, direction_norm, 1.0), 1.0)
