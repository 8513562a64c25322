"""Figures of the kinds of ``explain`` about every row of a file; see ``explained``."""

from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.representations.tcav import concept_figure

_MOST = 40  # rows drawn by name


def _pairs(record, dark):
    shown = record["pairs"][:_MOST]
    names = [f"{one['row']}: {one['good']:.40}" for one in shown]
    return ranked_bars(names, [one["margin"] for one in shown], "how much likelier the first is, nats", dark)


def _concepts(record, dark):
    return concept_figure(record["scores"], record["chance"], record["differs"], "score", dark)


KINDS = {
    "concepts": _concepts,
    "pairs": _pairs,
}
