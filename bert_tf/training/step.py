"""One training step: the same update on one device, on several devices, and with any number of micro-batches.

Shapes: B sequences of an update over all devices, R devices ("replicas"), K micro-batches per device.

Gradient clipping, averaging and accumulation of Keras' optimisers work on each replica alone. That gives other results
than one device, without a warning. So this module has its own exact step: it first counts the targets of the whole
batch; every part divides its loss by that count; the gradients are summed over micro-batches and replicas; and the sum
is clipped. One device with the same batch gets the same weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from bert_tf.training import strategy as distribution

if TYPE_CHECKING:
    import keras


class Step:
    """A callable that updates a model's weights with one batch.

    Args:
        model: a Keras model, made in the strategy's scope.
        objective: the training objective, as `training.loop.Trainer` describes it.
        optimizer: a built Keras optimiser, made in the strategy's scope.
        clip_norm: float. The bound of the global norm of the whole batch's gradient.
        strategy: a `tf.distribute.Strategy`, or None for one device.
        accumulate: int. K; a larger K takes less memory and changes nothing else.
        jit_compile: bool. Whether XLA compiles the step. With several replicas each compiles its own part, and the sums
            between replicas run outside, because XLA has no collectives on CPUs and GPUs. A TPU always compiles
            everything.
    """

    def __init__(
        self,
        model: keras.Model,
        objective: Any,
        optimizer: keras.optimizers.Optimizer,
        clip_norm: float = 1.0,
        strategy: tf.distribute.Strategy | None = None,
        accumulate: int = 1,
        jit_compile: bool = False,
    ) -> None:
        self.model, self.objective, self.optimizer = model, objective, optimizer
        self.clip_norm, self.strategy, self.accumulate = clip_norm, strategy, accumulate
        self.replicas = distribution.num_replicas(strategy)
        self.variables = model.trainable_variables
        self._accumulated = self._sum_micro_batches
        if strategy is None:
            self._run = _compiled(self._update, jit_compile)
        else:
            if jit_compile and not isinstance(strategy, tf.distribute.TPUStrategy):
                self._accumulated = _compiled(self._sum_micro_batches, jit_compile)
            self._run = _compiled(lambda batch: strategy.run(self._update, args=(batch,)))

    def __call__(self, batch: dict[str, Any]) -> dict[str, tf.Tensor]:
        """Does one update.

        Args:
            batch: dict of arrays whose first axis is B, the same in every process. The shapes must not change between
                calls; other shapes are compiled again. B must be a multiple of R times K (see `check_batch_size`).

        Returns: dict of scalar tensors: the objective's values over the whole batch, `gradient_norm` before
            clipping, the update's `learning_rate` and, with a loss scale, `loss_scale`.
        """
        if self.strategy is None:
            return self._run({name: tf.convert_to_tensor(array) for name, array in batch.items()})
        values = self._run(
            self.strategy.experimental_distribute_values_from_function(
                lambda context: self._share(batch, context.replica_id_in_sync_group)
            )
        )
        return {name: self.strategy.experimental_local_results(value)[0] for name, value in values.items()}

    def _share(self, batch, replica):
        rows = len(next(iter(batch.values()))) // self.replicas
        return {
            name: tf.convert_to_tensor(np.asarray(array)[replica * rows : (replica + 1) * rows])
            for name, array in batch.items()
        }

    def _update(self, batch):
        """Updates on one replica: takes its B / R sequences, returns the values of the whole batch."""
        counts = self._over_replicas(self.objective.counts(batch))
        gradients, values = self._over_replicas(self._accumulated(batch, counts))
        scale = self._loss_scale()
        # The gradients are multiplied by the loss scale, so the bound is too; the clipped gradients stay scaled.
        gradients, norm = tf.clip_by_global_norm(gradients, self.clip_norm * scale)
        # Read before `apply`, which moves the schedule one step on.
        rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        # `apply` sums over the replicas again, but each replica already has the sum: so it is divided first.
        self.optimizer.apply(
            [gradient / self.replicas for gradient in gradients] if self.replicas > 1 else gradients,
            self._updated_variables,
        )
        values = {**values, "gradient_norm": norm / scale, "learning_rate": rate}
        return values if self._dynamic_scale() is None else {**values, "loss_scale": scale}

    def _over_replicas(self, tensors):
        if self.replicas == 1:
            return tensors
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tensors)

    def _sum_micro_batches(self, batch, counts):
        """(gradients, values) of this replica's part, computed in K micro-batches of B / R / K sequences."""
        if self.accumulate == 1:
            return self._gradients(batch, counts)
        rounds = self.accumulate
        micro_batches = {
            name: tf.reshape(tensor, (rounds, tensor.shape[0] // rounds, *tensor.shape[1:]))
            for name, tensor in batch.items()
        }

        def add_one(index, totals):
            gradients_and_values = self._gradients(
                {name: tensor[index] for name, tensor in micro_batches.items()}, counts
            )
            return index + 1, tf.nest.map_structure(tf.add, totals, gradients_and_values)

        first = self._gradients({name: tensor[0] for name, tensor in micro_batches.items()}, counts)
        # A loop, not K copies of the graph; one round at a time, to save memory.
        _, totals = tf.while_loop(
            lambda index, _: index < rounds,
            add_one,
            (tf.constant(1), first),
            parallel_iterations=1,
            maximum_iterations=rounds - 1,
        )
        return totals

    def _gradients(self, batch, counts):
        """(a list with one dense gradient for each variable that the loss depends on, values) of one micro-batch."""
        inputs = {name: batch[name] for name in self.objective.model_inputs}
        with tf.GradientTape() as tape:
            values = self.objective(self.model(inputs, training=True), batch, counts)
            loss = values["loss"] * self._loss_scale()
        pairs = [
            (gradient, variable)
            for gradient, variable in zip(
                tape.gradient(loss, [variable.value for variable in self.variables]), self.variables
            )
            if gradient is not None
        ]
        self._updated_variables = [variable for _, variable in pairs]
        # Dense, because the norm of a sparse gradient would count a row that occurs twice as two rows.
        return [tf.convert_to_tensor(gradient) for gradient, _ in pairs], values

    def _dynamic_scale(self):
        """The loss scale variable of the optimiser, or None."""
        return getattr(self.optimizer, "dynamic_scale", None)

    def _loss_scale(self):
        scale = self._dynamic_scale()
        return 1.0 if scale is None else tf.convert_to_tensor(scale)


def _compiled(function, jit_compile=False):
    # The step has no Python control flow over tensors, and the search for it takes longer than tracing.
    return tf.function(function, jit_compile=jit_compile, autograph=False)


def check_batch_size(batch_size: int, strategy: tf.distribute.Strategy | None, accumulate: int) -> None:
    """Checks that a batch divides evenly over the replicas and their micro-batches.

    Args:
        batch_size: int. B.
        strategy: a `tf.distribute.Strategy`, or None for one device.
        accumulate: int. K.

    Raises: ValueError if it does not, or if `accumulate` is below 1.
    """
    parts = distribution.num_replicas(strategy) * accumulate
    if accumulate < 1:
        raise ValueError(f"--accumulate is {accumulate}; it must be 1 or more.")
    if batch_size < parts or batch_size % parts:
        raise ValueError(
            f"A batch of {batch_size} does not divide over {distribution.num_replicas(strategy)} "
            f"devices x {accumulate} micro-batches; --batch-size must be a multiple of {parts}."
        )
