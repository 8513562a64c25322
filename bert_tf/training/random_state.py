"""The random states of a training (dropout): different on every replica, and saved in checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bert_tf.training import strategy as distribution

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


_REPLICA_STRIDE = 7919


class RandomStates:
    """The states of a model's seed generators, int64 [2] each: the seed and the number of draws.

    With a strategy each replica has a copy of every state. With equal copies all replicas would drop the same units of
    their different sequences, so an offset that depends on the replica's number is added to the seed of each copy.

    Args:
        model: a Keras model.
        strategy: the `tf.distribute.Strategy` that the model was made with, or None.
    """

    def __init__(self, model: keras.Model, strategy: tf.distribute.Strategy | None = None) -> None:
        weights = {id(variable) for variable in model.weights}
        self._variables = [variable for variable in model.variables if id(variable) not in weights]
        self._strategy = strategy
        self._fresh = self.state()
        self.restore(None)

    def state(self) -> list[list[int]]:
        """The states of the first replica, for `restore`: a list of [seed, draws]."""
        return [np.asarray(self._copies(variable)[0]).tolist() for variable in self._variables]

    def restore(self, state: list[list[int]] | None) -> None:
        """Sets the copies of every replica.

        Args:
            state: list of [seed, draws] from `state`. None restores the seeds that the model was made with, and so does
                a list for another number of generators (dropout was switched on or off since).
        """
        first = state if state and len(state) == len(self._fresh) else self._fresh
        for variable, (seed, draws) in zip(self._variables, first):
            for number, copy in enumerate(self._copies(variable)):
                copy.assign([seed + self._offset(number), draws])

    def _copies(self, variable):
        """The tf.Variable of each replica of this process."""
        return getattr(variable.value, "values", (variable.value,))

    def _offset(self, number):
        """The seed offset of this process's replica `number`; 0 for the first replica of the whole training."""
        if self._strategy is None:
            return 0
        local = len(self._strategy.extended.worker_devices)
        return (distribution.worker_number(self._strategy) * local + number) * _REPLICA_STRIDE
