"""Figures of the kinds of ``explain`` about why a model answers so; see ``explained``."""

import numpy as np

from bert_tf.plots.attribution.hotflip import flip_bars
from bert_tf.plots.attribution.input_reduction import reduction_curve
from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.theme import escape


def _saliency(record, dark):
    label = record["target"]["label"]
    if record["method"] == "input_reduction":
        gone = record["gone"]
        shares = np.exp([record["log_probability"], *(one["log_probability"] for one in gone)])
        return reduction_curve([one["text"] for one in gone], shares, label, dark)
    if record["method"] == "hotflip":
        tried = record["tried"]
        names = [f"{one['text']} → {one['new']}" for one in tried]
        return flip_bars(names, *([one[name] for one in tried] for name in ("change", "estimate")), dark)
    words = record["words"]
    of = "log-odds" if record["method"] == "layerwise_relevance" else "log-probability"
    unit = "value" if record["target"]["of_value"] else f"{of} of {escape(label)}"
    unit += ": part of each word"
    return ranked_bars([word["text"] for word in words], [word["score"] for word in words], unit, dark)


KINDS = {"saliency": _saliency}
