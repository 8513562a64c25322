"""AdamW (Loshchilov & Hutter 2019, "Decoupled Weight Decay Regularization")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:
    from collections.abc import Iterable


class AdamW(keras.optimizers.Adam):
    """Adam with decoupled weight decay; each variable has its own learning rate factor and weight decay.

    Args:
        schedule: a Keras `LearningRateSchedule`, or a float. The learning rate.
        settings: iterable of `(factor, decay)`, one for each variable in the order of `build`: the factor of its
            learning rate, and its weight decay.
        products: str. Has no effect; other optimisers use it.
    """

    def __init__(
        self,
        schedule: keras.optimizers.schedules.LearningRateSchedule | float,
        settings: Iterable[tuple[float, float]],
        products: str = "float32",
    ):
        super().__init__(schedule, beta_1=0.9, beta_2=0.999, epsilon=1e-6)
        self.settings = list(settings)

    def update_step(self, gradient: Any, variable: keras.Variable, learning_rate: Any) -> None:
        rate = self._decayed(variable, learning_rate)
        if keras.backend.backend() == "tensorflow":
            self._apply_in_one_pass(gradient, variable, rate)
        else:
            super().update_step(gradient, variable, rate)

    def _decayed(self, variable, learning_rate):
        """Applies the weight decay of a variable. Returns: the learning rate of the variable."""
        factor, decay = self.settings[self._get_variable_index(variable)]
        rate = learning_rate if factor == 1 else learning_rate * factor
        if decay:
            self.assign_sub(variable, variable * (decay * keras.ops.cast(rate, variable.dtype)))
        return rate

    def _apply_in_one_pass(self, gradient, variable, rate):
        """Computes the same as Keras' `update_step` with TensorFlow's Adam kernel.

        The kernel reads the memory once, not a dozen times. On a CPU with small batches the optimiser's memory traffic
        is most of the cost of an update.
        """
        import tensorflow as tf

        index, dtype = self._get_variable_index(variable), variable.dtype
        step = tf.cast(self.iterations + 1, dtype)
        betas = [tf.constant(beta, dtype) for beta in (self.beta_1, self.beta_2)]
        tf.raw_ops.ResourceApplyAdam(
            var=(variable.value if isinstance(variable, keras.Variable) else variable).handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=betas[0] ** step,
            beta2_power=betas[1] ** step,
            lr=tf.cast(rate, dtype),
            beta1=betas[0],
            beta2=betas[1],
            epsilon=tf.constant(self.epsilon, dtype),
            grad=tf.cast(gradient, dtype),
        )
