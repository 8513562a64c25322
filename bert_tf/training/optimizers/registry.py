"""The optimisers: AdamW, LAMB or Muon, linear warm-up and decay, layer-wise learning rates.

Sources: Devlin et al. 2019, section A.2; google-research/bert `optimization.py`; Clark et al. 2020 (ELECTRA),
table 7, and Howard & Ruder 2018, section 3.2, for the learning rates by layer.
"""

import keras

OPTIMIZERS = ("adamw", "lamb", "muon")


@keras.saving.register_keras_serializable(package="bert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear from 0 to `peak` over the warm-up, then linear to 0 at `total_steps`.

    Update k (from 0) of T with a warm-up of W has the share (k + 1) / W of the peak, after the warm-up
    (T - k) / (T - W): none has a rate of 0, not even the only one of a short run.

    Args:
        peak: the highest learning rate. total_steps: updates in all.
        warmup_steps: updates before the peak.
    """

    def __init__(self, peak, total_steps, warmup_steps):
        self.peak, self.total_steps, self.warmup_steps = peak, total_steps, warmup_steps

    def __call__(self, step):
        ops = keras.ops
        step = ops.cast(step, "float32")
        rise = (step + 1.0) / max(1, self.warmup_steps)
        fall = (self.total_steps - step) / max(1, self.total_steps - self.warmup_steps)
        return self.peak * ops.clip(ops.minimum(rise, fall), 0.0, 1.0)

    def get_config(self):
        return {"peak": self.peak, "total_steps": self.total_steps, "warmup_steps": self.warmup_steps}


class AdamW(keras.optimizers.Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019), with a learning rate and a decay a
    variable.

    Args:
        schedule: of the learning rate. settings: one `(factor, decay)` a variable in `build`'s order: what
            its learning rate is multiplied by, and its weight decay.
    """

    def __init__(self, schedule, settings):
        super().__init__(schedule, beta_1=0.9, beta_2=0.999, epsilon=1e-6)
        self.settings = list(settings)

    def update_step(self, gradient, variable, learning_rate):
        rate = self._decayed(variable, learning_rate)
        if keras.backend.backend() == "tensorflow":
            self._apply_in_one_pass(gradient, variable, rate)
        else:
            super().update_step(gradient, variable, rate)

    def _decayed(self, variable, learning_rate):
        """Decays the weights. Returns: the variable's own rate."""
        factor, decay = self.settings[self._get_variable_index(variable)]
        rate = learning_rate if factor == 1 else learning_rate * factor
        if decay:
            self.assign_sub(variable, variable * (decay * keras.ops.cast(rate, variable.dtype)))
        return rate

    def _apply_in_one_pass(self, gradient, variable, rate):
        """What Keras' own `update_step` computes, by TensorFlow's kernel: it goes over the memory once and not a
        dozen times, which on a CPU is most of an update's cost when batches are small."""
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


def make_optimizer(
    variables, peak, total_steps, warmup_steps, weight_decay=0.01, name="adamw", factors=None, products="float32"
):
    """An optimiser after BERT's recipe: beta 0.9 and 0.999, epsilon 1e-6, no decay on layer normalisation
    and biases.

    The original leaves out Adam's bias correction; the optimisers here apply it, which only matters in the
    first steps and there is tamed by the warm-up.

    Args:
        variables: the trainable ones, in a fixed order. peak, total_steps, warmup_steps: see
            `WarmupLinearDecay`.
        name: one of `OPTIMIZERS`; LAMB is for batches of thousands. factors: from `layer_factors`, or None.
        products: dtype of Muon's matrix products.

    Returns: a built Keras optimiser. Gradients are to be clipped before it (see `training.step`).

    Raises: ValueError on another name.
    """
    from bert_tf.training.optimizers.lamb import Lamb
    from bert_tf.training.optimizers.muon import Muon

    if name not in OPTIMIZERS:
        raise ValueError(f"There is no optimiser {name!r}; choose from {', '.join(OPTIMIZERS)}.")
    settings = [
        ((factors or {}).get(id(variable), 1.0), 0.0 if variable.name in ("bias", "gamma", "beta") else weight_decay)
        for variable in variables
    ]
    schedule = WarmupLinearDecay(peak, total_steps, warmup_steps)
    optimizer = (
        Muon(schedule, settings, products)
        if name == "muon"
        else {"adamw": AdamW, "lamb": Lamb}[name](schedule, settings)
    )
    optimizer.build(variables)
    return optimizer


def adamw(variables, peak, total_steps, warmup_steps, weight_decay=0.01):
    """`make_optimizer` for the usual case."""
    return make_optimizer(variables, peak, total_steps, warmup_steps, weight_decay)


def layer_factors(model, decay):
    """Learning-rate factors that fall by `decay` a layer from the heads (1) down to the embeddings.

    Args:
        model: a `BertModel` of L layers. decay: above 0, up to 1; 0.8 to 0.95 is usual when fine-tuning.

    Returns: dict id(variable) -> factor: `decay` to the power of L - i for layer i, of L + 1 for the
        embeddings. What is not in it has the factor 1.

    Raises: ValueError on a decay out of range.
    """
    if not 0 < decay <= 1:
        raise ValueError(f"The learning-rate decay by layer is {decay}; it must be above 0 and not above 1.")
    count = model.bert_config.num_hidden_layers
    depths = {"embeddings": count + 1, **{f"layer_{index}": count - index for index in range(count)}}
    return {
        id(variable): decay**depth
        for name, depth in depths.items()
        for variable in model.bert_layers[name].trainable_variables
    }


def warmup_steps(warmup, total_steps):
    """Updates to warm up in.

    Args:
        warmup: below 1 a share of all updates, else their number.

    Raises: ValueError if it is negative, no whole number, or more than all updates.
    """
    steps = round(warmup * total_steps) if 0 <= warmup < 1 else warmup
    if steps < 0 or steps != int(steps) or steps > total_steps:
        raise ValueError(
            f"The warm-up is {warmup:g}; it must be a share below 1, or a whole number of steps up to {total_steps}."
        )
    return int(steps)
