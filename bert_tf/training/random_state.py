"""The random numbers of a training (dropout): different on every replica, and part of a checkpoint."""

import numpy as np

from bert_tf.training import strategy as distribution

_REPLICA_STRIDE = 7919


class RandomStates:
    """The states of a model's seed generators, int64 [2] each: a seed and how often it was drawn from.

    Under a strategy each replica has a copy of every state. Left alike, all replicas would drop the same
    units of their different sequences, so each copy's seed is moved by the replica's number.

    Args:
        model: a Keras model. strategy: the one it was made under, or None.
    """

    def __init__(self, model, strategy=None):
        weights = {id(variable) for variable in model.weights}
        self._variables = [variable for variable in model.variables if id(variable) not in weights]
        self._strategy = strategy
        self._fresh = self.state()
        self.restore(None)

    def state(self):
        """What `restore` needs: a list of [seed, draws], as the first replica has them."""
        return [np.asarray(self._copies(variable)[0]).tolist() for variable in self._variables]

    def restore(self, state):
        """Sets every replica's copies.

        Args:
            state: from `state`; None, or one for another number of generators (dropout was switched on or off
                since), for the seeds that the model was made with.
        """
        first = state if state and len(state) == len(self._fresh) else self._fresh
        for variable, (seed, draws) in zip(self._variables, first):
            for number, copy in enumerate(self._copies(variable)):
                copy.assign([seed + self._offset(number), draws])

    def _copies(self, variable):
        """The tf.Variable of each replica of this process."""
        return getattr(variable.value, "values", (variable.value,))

    def _offset(self, number):
        """Of this process's replica `number`; 0 for the first of the whole training."""
        if self._strategy is None:
            return 0
        local = len(self._strategy.extended.worker_devices)
        return (distribution.worker_number(self._strategy) * local + number) * _REPLICA_STRIDE
