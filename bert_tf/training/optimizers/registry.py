"""An optimiser made by its name, after BERT's recipe.

Sources: Devlin et al. 2019, section A.2; google-research/bert `optimization.py`.
"""

from importlib import import_module

from bert_tf.training.optimizers import OPTIMIZERS
from bert_tf.training.optimizers.schedule import WarmupLinearDecay


def make_optimizer(
    variables, peak, total_steps, warmup_steps, weight_decay=0.01, name="adamw", factors=None, products="float32"
):
    """An optimiser after BERT's recipe: beta 0.9 and 0.999, epsilon 1e-6, no decay on layer normalisation
    and biases.

    The original leaves out Adam's bias correction; the optimisers here apply it, which only matters in the
    first steps and there is tamed by the warm-up.

    Args:
        variables: the trainable ones, in a fixed order. peak, total_steps, warmup_steps: see
            `schedule.WarmupLinearDecay`.
        name: one of `OPTIMIZERS`; LAMB is for batches of thousands. factors: from `schedule.layer_factors`, or None.
        products: dtype of the matrix products that an optimiser computes itself (Muon).

    Returns: a built Keras optimiser. Gradients are to be clipped before it (see `training.step`).

    Raises: ValueError on another name.
    """
    if name not in OPTIMIZERS:
        raise ValueError(f"There is no optimiser {name!r}; choose from {', '.join(OPTIMIZERS)}.")
    settings = [
        ((factors or {}).get(id(variable), 1.0), 0.0 if variable.name in ("bias", "gamma", "beta") else weight_decay)
        for variable in variables
    ]
    schedule = WarmupLinearDecay(peak, total_steps, warmup_steps)
    module, of_name = OPTIMIZERS[name]
    optimizer = getattr(import_module(module), of_name)(schedule, settings, products=products)
    optimizer.build(variables)
    return optimizer
