"""Figures of the kinds of ``explain`` about why a model answers so; see ``explained``."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from bert_tf.plots.diverging import diverging_scale
from bert_tf.plots.explained_parts import answer_panels, value_map
from bert_tf.plots.interventions.ablation import effects_map, ranked_bars
from bert_tf.plots.interventions.patching import patched_heads_map
from bert_tf.plots.theme import CATEGORIES, apply_theme, escape, unique_labels


def _ablation(record, dark):
    if "ranking" in record:
        names = [
            ".".join(map(str, one["off"])) if isinstance(one["off"], list) else str(one["off"])
            for one in record["ranking"]
        ]
        values, unit = _swept(record["ranking"])
        return ranked_bars(
            [f"{record['sweep']} {name}" for name in names[:60]], values[:60], f"{unit}, each off alone", dark
        )
    panels = [(f"token {mask['position']}", mask["before"], mask["after"]) for mask in record["masks"]]
    panels += _panels_of_others(record)
    attention_shifts, rows = np.array(record["shifts"], float), len(panels) + 1
    figure = answer_panels(panels, ("as it is", "without"), ["attention that goes elsewhere, head by head"])
    layers, heads = ([str(number) for number in range(count)] for count in attention_shifts.shape)
    shifted = value_map(attention_shifts, heads, layers, dark, "layer %{y}, head %{x}: %{z:.1%}")
    figure.add_trace(shifted.update(showscale=False), row=rows, col=1)
    figure.update_yaxes(row=rows, col=1, type="category", autorange="reversed")
    figure.update_xaxes(row=rows, col=1, type="category")
    return apply_theme(figure, dark, 120 + 230 * rows)


def _swept(ranking):
    """(a number for each part that was switched off, what it is): of the masks, else the class, else the pair."""
    if ranking[0]["divergences_bits"]:
        return [float(np.mean(one["divergences_bits"])) for one in ranking], "change of the prediction, bits"
    units = {
        "class_change": "change of the class, nats or units of its value",
        "is_next_change": "change of P(IsNext)",
        "in_order_change": "change of P(in order)",
        "replaced_change": "change of P(replaced), mean of the tokens",
    }
    name = next(name for name in units if ranking[0][name] is not None)
    return [one[name] for one in ranking], units[name]


def _panels_of_others(record):
    """(title, answers before, answers after) of the answers that are about no mask."""
    panels = []
    titles = {"is_next": ("next sentence", "B follows A"), "in_order": ("sentence order", "A and B in order")}
    for name, (title, label) in titles.items():
        both = [record[f"{name}_{when}"] for when in ("before", "after")]
        if both[0] is not None:
            panels.append((title, *([{"token": label, "probability": share}] for share in both)))
    if record["classes_before"] is not None:
        both = [record[f"classes_{when}"] for when in ("before", "after")]
        answers = ([{"token": name, "probability": share} for name, share in one.items()] for one in both)
        panels.append(("class", *answers))
    if record["replaced_before"] is not None:
        names = unique_labels(record["tokens"])
        both = [record[f"replaced_{when}"] for when in ("before", "after")]
        answers = ([{"token": name, "probability": share} for name, share in zip(names, one)] for one in both)
        panels.append(("replaced", *answers))
    return panels


def _contributions(record, dark):
    heads = np.array(record["heads"], float)
    unit = "of the value" if record["target"]["of_value"] else "nats"
    return effects_map(np.column_stack([heads, record["feed_forward"]]), unit, dark, heads.shape[1], first=0)


def _patching(record, dark):
    recovered = np.array(record["recovered"], float)
    if record["carried_over"] == "head":
        return patched_heads_map(recovered, dark, first=0)
    names = unique_labels(
        one if one == other else f"{other} → {one}" for one, other in zip(record["tokens"], record["corrupted_tokens"])
    )
    carried = record["carried_over"]
    rows = list(map(str, range(len(recovered))))
    where = "state %{y}" if carried == "state" else f"{carried} of layer %{{y}}"
    figure = go.Figure(value_map(recovered, names, rows, dark, f"{where}, %{{x}}<br>%{{z:.2f}} recovered"))
    figure.update_traces(colorscale=diverging_scale(dark), zmin=-1, zmax=1)
    figure.update_xaxes(tickangle=-90, type="category", ticks="", showgrid=False)
    title = "state put back, 0 the embeddings" if carried == "state" else f"{carried} put back, layer"
    figure.update_yaxes(title=title, type="category", ticks="", showgrid=False)
    return apply_theme(figure, dark, 200 + 28 * len(recovered))


def _paths(record, dark):
    shares = np.where(record["leads"], np.array(record["recovered"], float), np.nan)
    return effects_map(shares, "of the difference", dark, shares.shape[1] - 1, first=0)


def _counterfactual(record, dark):
    masks = max((len(one["masks"]) for one in record["variants"]), default=0)
    if not masks:
        names = {"is_next_change": "change of P(IsNext)", "in_order_change": "change of P(in order)"}
        name = next((name for name in names if any(one[name] is not None for one in record["variants"])), None)
        # A half alone has no second text to judge.
        kept = [one for one in record["variants"] if name and one[name] is not None]
        return ranked_bars([one["label"] for one in kept], [one[name] for one in kept], names.get(name, ""), dark)
    kept = [one for one in record["variants"] if one["masks"]]
    names = [f"{one['label']}: {' '.join(mask['predictions'][0]['token'] for mask in one['masks'])}" for one in kept]
    bits = [float(np.mean([mask["divergence_bits"] for mask in one["masks"]])) for one in kept]
    return ranked_bars(names, bits, "change of the prediction, bits", dark)


def _likelihood(record, dark):
    figure = make_subplots(
        rows=len(record["texts"]), cols=1, subplot_titles=[escape(one["text_a"]) for one in record["texts"]]
    )
    for row, one in enumerate(record["texts"], 1):
        shown = [(token, value) for token, value in zip(one["tokens"], one["log_probabilities"]) if value is not None]
        bars = go.Bar(
            x=unique_labels(token for token, _ in shown),
            y=[value for _, value in shown],
            marker_color=CATEGORIES[0],
            showlegend=False,
            hovertemplate="%{x}: %{y:.2f} nats<extra></extra>",
        )
        figure.add_trace(bars, row=row, col=1)
    figure.update_xaxes(type="category")
    figure.update_yaxes(title="log-probability")
    return apply_theme(figure, dark, 120 + 240 * len(record["texts"]))


KINDS = {
    "ablation": _ablation,
    "contributions": _contributions,
    "patching": _patching,
    "paths": _paths,
    "counterfactual": _counterfactual,
    "likelihood": _likelihood,
}
