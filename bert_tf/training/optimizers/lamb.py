"""LAMB, for batches of thousands of sequences (You et al. 2020, "Large Batch Optimization for Deep Learning",
algorithm 2; arXiv 1904.00962)."""

import keras


class Lamb(keras.optimizers.Optimizer):
    """Adam's direction plus weight decay, scaled for each variable to the variable's own norm.

    Keras' own LAMB decays the weights outside of that scaling, which is not the paper's. As in the authors'
    code, variables without weight decay (biases, layer normalisation) are not scaled either.

    Args:
        schedule, settings, products: as `training.optimizers.adamw.AdamW`.
    """

    def __init__(self, schedule, settings, products="float32", beta_1=0.9, beta_2=0.999, epsilon=1e-6):
        super().__init__(schedule)
        self.settings = list(settings)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def build(self, variables):
        """Makes the two moments of each variable."""
        if self.built:
            return
        super().build(variables)
        self._momentums, self._velocities = self.add_optimizer_variables(variables, ["momentum", "velocity"])

    def update_step(self, gradient, variable, learning_rate):
        """One update of one variable; its gradient has its shape."""
        ops = keras.ops
        index = self._get_variable_index(variable)
        factor, decay = self.settings[index]
        rate = ops.cast(learning_rate, variable.dtype) * factor
        gradient = ops.cast(gradient, variable.dtype)
        momentum = self._moved(self._momentums[index], gradient, self.beta_1)
        velocity = self._moved(self._velocities[index], ops.square(gradient), self.beta_2)
        done = ops.cast(self.iterations + 1, variable.dtype)
        # The running means start from zero; this takes out what that weighs.
        first = momentum / (1 - ops.power(ops.cast(self.beta_1, variable.dtype), done))
        second = velocity / (1 - ops.power(ops.cast(self.beta_2, variable.dtype), done))
        direction = first / (ops.sqrt(second) + self.epsilon)
        if decay:
            value = ops.convert_to_tensor(variable)
            direction = direction + decay * value
            rate = rate * _trust(value, direction)
        self.assign_sub(variable, rate * direction)

    def _moved(self, mean, value, beta):
        new = beta * mean + (1 - beta) * value
        self.assign(mean, new)
        return new


def _trust(value, direction):
    """The variable's norm over its direction's; 1 where one of them is 0."""
    ops = keras.ops
    size, length = (ops.sqrt(ops.sum(ops.square(tensor))) for tensor in (value, direction))
    both = ops.logical_and(size > 0, length > 0)
    return ops.where(both, size / ops.where(both, length, 1.0), 1.0)
