"""The learning rate schedule of a training, and the learning rate factors of a model's layers.

Sources: google-research/bert `optimization.py`; Clark et al. 2020 (ELECTRA), table 7, and Howard & Ruder 2018,
section 3.2, for the learning rates by layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:
    from bert_tf.models import BertModel

#: Names of the variables without weight decay: biases, and the two of a layer normalisation.
UNDECAYED = frozenset({"bias", "gamma", "beta"})


@keras.saving.register_keras_serializable(package="bert_tf")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises linearly from 0 to `peak` in the warm-up, then falls linearly to 0 at `total_steps`.

    Of T updates with W warm-up updates, update k (from 0) has the share (k + 1) / W of the peak in the warm-up, and
    (T - k) / (T - W) after it. No update has a rate of 0, not even in a run of one update.

    Args:
        peak: float. The highest learning rate.
        total_steps: int. The number of updates of the training.
        warmup_steps: int. The number of updates before the peak.

    Example:
        schedule = WarmupLinearDecay(peak=1e-4, total_steps=1000, warmup_steps=100)
        rate = float(schedule(0))
    """

    def __init__(self, peak: float, total_steps: int, warmup_steps: int):
        self.peak, self.total_steps, self.warmup_steps = peak, total_steps, warmup_steps

    def __call__(self, step: Any) -> Any:
        ops = keras.ops
        step = ops.cast(step, "float32")
        rise = (step + 1.0) / max(1, self.warmup_steps)
        fall = (self.total_steps - step) / max(1, self.total_steps - self.warmup_steps)
        return self.peak * ops.clip(ops.minimum(rise, fall), 0.0, 1.0)

    def get_config(self) -> dict[str, Any]:
        return {"peak": self.peak, "total_steps": self.total_steps, "warmup_steps": self.warmup_steps}


def warmup_steps(warmup: float, total_steps: int) -> int:
    """The number of warm-up updates.

    Args:
        warmup: float. Below 1 the share of all updates, else the number of updates.
        total_steps: int. The number of updates of the training.

    Returns: int.

    Raises: ValueError if `warmup` is no number, negative, above 1 and not a whole number, or more than all updates.
    """
    steps = round(warmup * total_steps) if 0 <= warmup < 1 else warmup
    if not 0 <= steps <= total_steps or steps != int(steps):
        raise ValueError(
            f"The warm-up is {warmup:g}; it must be a share below 1, or a whole number of steps up to {total_steps}."
        )
    return int(steps)


def layer_factors(model: BertModel, decay: float) -> dict[int, float]:
    """Learning rate factors: 1 for the heads, and multiplied by `decay` for each layer down to the embeddings.

    Args:
        model: a `BertModel` of L layers.
        decay: float. Above 0, up to 1; 0.8 to 0.95 is usual in fine-tuning.

    Returns: dict id(variable) -> factor: `decay` to the power of L - i for layer i (from 0), and of L + 1 for the
        embeddings. Variables that are not in it have the factor 1.

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
