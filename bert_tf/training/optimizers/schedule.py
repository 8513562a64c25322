"""The learning rate over the updates of a training, and over the layers of a model.

Sources: google-research/bert `optimization.py`; Clark et al. 2020 (ELECTRA), table 7, and Howard & Ruder 2018,
section 3.2, for the learning rates by layer.
"""

import keras


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
