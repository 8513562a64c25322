"""AdamW with linear warm-up and linear decay (Devlin et al. 2019, section A.2; google-research/bert `optimization.py`)."""

import keras


@keras.saving.register_keras_serializable(package="bert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear from 0 to `peak` over the warm-up, then linear to 0 at `total_steps`.

    Args:
        peak: the highest learning rate. total_steps: updates in all.
        warmup_steps: updates before the peak.
    """

    def __init__(self, peak, total_steps, warmup_steps):
        self.peak, self.total_steps, self.warmup_steps = peak, total_steps, warmup_steps

    def __call__(self, step):
        ops = keras.ops
        done = ops.cast(step, "float32") + 1.0
        rise = done / max(1, self.warmup_steps)
        fall = (self.total_steps - done) / max(1, self.total_steps - self.warmup_steps)
        return self.peak * ops.clip(ops.minimum(rise, fall), 0.0, 1.0)

    def get_config(self):
        return {"peak": self.peak, "total_steps": self.total_steps, "warmup_steps": self.warmup_steps}


def adamw(variables, peak, total_steps, warmup_steps, weight_decay=0.01):
    """AdamW, beta 0.9 and 0.999, epsilon 1e-6, no decay on layer normalisation and biases.

    The original leaves out Adam's bias correction; Keras' AdamW applies it, which only matters in the first
    steps and there is tamed by the warm-up.

    Args:
        variables: the trainable ones, in a fixed order.

    Returns: a built `keras.optimizers.AdamW`. Gradients are to be clipped before it (see `train.loop`).
    """
    optimizer = keras.optimizers.AdamW(WarmupLinearDecay(peak, total_steps, warmup_steps),
                                       weight_decay=weight_decay, beta_1=0.9, beta_2=0.999, epsilon=1e-6)
    optimizer.exclude_from_weight_decay(
        var_list=[variable for variable in variables if variable.name in ("bias", "gamma", "beta")])
    optimizer.build(variables)
    return optimizer
