"""One update of a model: the same on one device, on several, and in as many micro-batches as memory asks for.

B sequences of an update over all devices, R devices ("replicas"), K micro-batches a device.

`clip_by_global_norm`, averages and accumulation built into Keras' optimisers work on each replica by itself,
which is silently another training. So the step is our own, and exact: the number of real targets is counted
over the whole batch first, every part adds its share of the loss by that number, the gradients' shares are
summed over micro-batches and replicas, and the sum is clipped. One device with the same batch gets the same
weights.
"""

import numpy as np
import tensorflow as tf

from bert_tf.training import strategy as distribution


class Step:
    """Applies an objective's gradients for one batch after another.

    Args:
        model, objective, optimizer: see `training.loop.Trainer`; made within the strategy's scope.
        clip_norm: bound of the global norm of the whole batch's gradient.
        strategy: a `tf.distribute.Strategy`, or None for one device.
        accumulate: K; more takes less memory, and changes nothing else.
        jit_compile: XLA. With several replicas each compiles its own part, and the sums between them run
            outside, as XLA has no collectives on CPUs and GPUs; a TPU compiles everything, asked or not.
    """

    def __init__(self, model, objective, optimizer, clip_norm=1.0, strategy=None, accumulate=1, jit_compile=False):
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

    def __call__(self, batch):
        """One update.

        Args:
            batch: dict of arrays whose first axis is B, the same in every process; always of one shape, so
                that nothing is compiled twice. B must be a multiple of R times K (see `check_batch_size`).

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
        """On one replica: its B / R sequences in; the values of the whole batch out."""
        counts = self._over_replicas(self.objective.counts(batch))
        gradients, values = self._over_replicas(self._accumulated(batch, counts))
        scale = self._loss_scale()
        # The loss scale grows the gradients alike, so the bound grows with it and the clipped ones stay
        # scaled.
        gradients, norm = tf.clip_by_global_norm(gradients, self.clip_norm * scale)
        # Read now, as the schedule goes on with `apply`.
        rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        # `apply` sums over the replicas once more, and each of them holds the whole sum by now.
        self.optimizer.apply(
            [gradient / self.replicas for gradient in gradients] if self.replicas > 1 else gradients, self._moved
        )
        values = {**values, "gradient_norm": norm / scale, "learning_rate": rate}
        return values if self._loss_scaled() is None else {**values, "loss_scale": scale}

    def _over_replicas(self, tensors):
        if self.replicas == 1:
            return tensors
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tensors)

    def _sum_micro_batches(self, batch, counts):
        """(gradients, values) of this replica's part, taken K times B / R / K sequences at once."""
        if self.accumulate == 1:
            return self._gradients(batch, counts)
        rounds = self.accumulate
        parts = {
            name: tf.reshape(tensor, (rounds, tensor.shape[0] // rounds, *tensor.shape[1:]))
            for name, tensor in batch.items()
        }

        def add_one(index, totals):
            found = self._gradients({name: part[index] for name, part in parts.items()}, counts)
            return index + 1, tf.nest.map_structure(tf.add, totals, found)

        first = self._gradients({name: part[0] for name, part in parts.items()}, counts)
        # A loop and not K copies of the graph; one round at a time, as memory is what it is for.
        _, totals = tf.while_loop(
            lambda index, _: index < rounds,
            add_one,
            (tf.constant(1), first),
            parallel_iterations=1,
            maximum_iterations=rounds - 1,
        )
        return totals

    def _gradients(self, batch, counts):
        """([one dense tensor a variable that the loss depends on], values) of one micro-batch."""
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
        self._moved = [variable for _, variable in pairs]
        # Dense, as the norm of a sparse one would count a row that occurs twice as two rows.
        return [tf.convert_to_tensor(gradient) for gradient, _ in pairs], values

    def _loss_scaled(self):
        return getattr(self.optimizer, "dynamic_scale", None)

    def _loss_scale(self):
        scale = self._loss_scaled()
        return 1.0 if scale is None else tf.convert_to_tensor(scale)


def _compiled(function, jit_compile=False):
    # There is no Python control flow over tensors in the step, and to look for it takes longer than tracing.
    return tf.function(function, jit_compile=jit_compile, autograph=False)


def check_batch_size(batch_size, strategy, accumulate):
    """Raises ValueError unless the batch divides evenly over the replicas and their micro-batches."""
    parts = distribution.num_replicas(strategy) * accumulate
    if accumulate < 1:
        raise ValueError(f"--accumulate is {accumulate}; it must be 1 or more.")
    if batch_size < parts or batch_size % parts:
        raise ValueError(
            f"A batch of {batch_size} does not divide over {distribution.num_replicas(strategy)} "
            f"devices x {accumulate} micro-batches; --batch-size must be a multiple of {parts}."
        )
