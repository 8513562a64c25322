"""Makes an optimiser by its name, with BERT's settings.

Sources: Devlin et al. 2019, section A.2; google-research/bert `optimization.py`.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING

from bert_tf.training.optimizers import OPTIMIZERS
from bert_tf.training.optimizers.schedule import UNDECAYED, WarmupLinearDecay

if TYPE_CHECKING:
    from collections.abc import Sequence

    import keras


def make_optimizer(
    variables: Sequence[keras.Variable],
    peak: float,
    total_steps: int,
    warmup_steps: int,
    weight_decay: float = 0.01,
    name: str = "adamw",
    factors: dict[int, float] | None = None,
    products: str = "float32",
) -> keras.optimizers.Optimizer:
    """Makes an optimiser with BERT's settings: beta 0.9 and 0.999, epsilon 1e-6, no decay of normalisation and biases.

    The original leaves out Adam's bias correction. The optimisers here apply it. It matters only in the first steps,
    where the warm-up makes its effect small.

    Args:
        variables: list of the trainable Keras variables, in a fixed order.
        peak: float. The highest learning rate.
        total_steps: int. The number of updates of the training.
        warmup_steps: int. The number of updates before the peak.
        weight_decay: float. The weight decay of all other variables.
        name: str. One of `OPTIMIZERS`; LAMB is for batches of thousands of sequences.
        factors: dict id(variable) -> learning rate factor, from `schedule.layer_factors`; or None.
        products: str. The dtype of the matrix products that an optimiser computes itself (Muon).

    Returns: a built Keras optimiser. It expects clipped gradients (see `training.step`).

    Raises: ValueError on another name, or as `check_rates`.
    """
    check_rates(peak, weight_decay)
    if name not in OPTIMIZERS:
        raise ValueError(f"There is no optimiser {name!r}; choose from {', '.join(OPTIMIZERS)}.")
    settings = rates_and_decays(variables, weight_decay, factors)
    schedule = WarmupLinearDecay(peak, total_steps, warmup_steps)
    module, class_name = OPTIMIZERS[name]
    optimizer = getattr(import_module(module), class_name)(schedule, settings, products=products)
    optimizer.build(variables)
    return optimizer


def check_rates(peak: float, weight_decay: float) -> None:
    """Checks the numbers of an optimiser.

    Args:
        peak, weight_decay: as in `make_optimizer`.

    Raises: ValueError if the learning rate is not above 0, the weight decay is below 0, or one is not finite.
    """
    if not 0 < peak < math.inf:
        raise ValueError(f"--learning-rate is {peak}; it must be above 0.")
    if not 0 <= weight_decay < math.inf:
        raise ValueError(f"--weight-decay is {weight_decay}; it must be 0 or more.")


def rates_and_decays(
    variables: Sequence[keras.Variable], weight_decay: float, factors: dict[int, float] | None = None
) -> list[tuple[float, float]]:
    """The `settings` of an optimiser: the learning rate factor and the weight decay of each variable.

    Args:
        variables: as in `make_optimizer`.
        weight_decay: as in `make_optimizer`.
        factors: as in `make_optimizer`.
    """
    return [
        ((factors or {}).get(id(variable), 1.0), 0.0 if variable.name in UNDECAYED else weight_decay)
        for variable in variables
    ]
