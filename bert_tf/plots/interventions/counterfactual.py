"""What the model says to variants of an input, as figures."""

import numpy as np

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.predictions import predictions


def counterfactual_changes(result, dark=False):
    """How far each variant of ``Counterfactuals`` moves the answer: of its masks the mean divergence, without masks the
    change of the verdict on the pair."""
    kept = [one for one in result.variants if one.masks]
    if kept:
        names = [f"{one.variant.label}: {' '.join(mask.predictions[0].token for mask in one.masks)}" for one in kept]
        bits = [float(np.mean(one.divergences)) for one in kept]
        return ranked_bars(names, bits, "change of the prediction, bits", dark)
    units = {"nsp_change": "change of P(IsNext)", "sop_change": "change of P(in order)"}
    for name, unit in units.items():
        # A half alone has no second text to judge.
        changes = [(one.variant.label, getattr(one, name)) for one in result.variants]
        changes = [(label, change) for label, change in changes if change is not None]
        if changes:
            return ranked_bars(*map(list, zip(*changes)), unit, dark)
    return ranked_bars([], [], "", dark)


def counterfactual_predictions(result, dark=False):
    """The predictions at the masks of the input, then of each variant of ``Counterfactuals``.

    Without masks: the predictions for the pair.
    """
    shown = [(mask, "the input") for mask in result.before]
    shown += [(mask, one.variant.label) for one in result.variants for mask in one.masks]
    if shown:
        return predictions([mask for mask, _ in shown], names=[name for _, name in shown], dark=dark)
    is_order = result.nsp_before is None
    verdicts = [("the input", result.sop_before if is_order else result.nsp_before)]
    verdicts += [(one.variant.label, one.sop if is_order else one.nsp) for one in result.variants]
    shares = [(name, verdict[0]) for name, verdict in verdicts if verdict is not None]
    unit = "P(in order)" if is_order else "P(IsNext)"
    return ranked_bars([name for name, _ in shares], [share for _, share in shares], unit, dark)
