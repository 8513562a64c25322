"""What the Compare page works out before it draws."""

import streamlit as st

from bert_tf.explain import summarise_heads
from ui.words import megabytes, milliseconds, title

WANTED = ("bert-base-uncased", "bert-large-uncased")
_LARGE = 24


def preset(installed, view):
    """Which two models to compare: those the view names, else Base beside Large, else what there is.

    Args:
        installed: ``ModelInfo`` of at least two models, the default first.
        view: the visitor's view.

    Returns:
        (name, name).
    """
    names = [info.name for info in installed]
    if view.other in names:
        return view.model, view.other
    large = next(
        (info for info in installed if info.config and info.config.num_hidden_layers == _LARGE), None
    )
    if large:
        # The released Base of the same spelling is the fair partner; else whatever the visitor uses.
        base = large.name.replace("large", "base").replace("-whole-word-masking", "")
        model = base if base in names and base != large.name else view.model
        return (model, large.name) if model != large.name else (names[0], large.name)
    return view.model, next(name for name in names if name != view.model)


def agreement_rows(found, trace):
    """The agreement at every mask as columns of a table."""

    def word(position):
        typed = trace.original_tokens[position] == trace.tokens[position]
        return "[MASK]" if typed else trace.original_tokens[position]

    return {
        "masked": [word(mask.position_a) for mask in found.masks],
        "one": [mask.predictions_a[0].token for mask in found.masks],
        "other": [mask.predictions_b[0].token for mask in found.masks],
        "shared": [mask.overlap for mask in found.masks],
        "divergence": [mask.divergence for mask in found.masks],
    }


def facts(pair, traces, infos, seconds):
    """Sizes and times of both models: a dict of columns, the first the names of the rows."""
    table = {
        "": [
            "Layers × heads",
            "Hidden size",
            "Parameters",
            "Weights in memory",
            "On disk",
            "Tokens here",
            "Time for this text",
        ]
    }
    for shared, trace, took in zip(pair, traces, seconds):
        config, info = shared.config, infos.get(shared.name)
        column = title(shared.name) + (" " if title(shared.name) in table else "")
        table[column] = [
            f"{config.num_hidden_layers} × {config.num_attention_heads}",
            str(config.hidden_size),
            f"{shared.parameters / 1e6:.1f} million",
            megabytes(shared.weight_bytes),
            megabytes(info.size_bytes) if info else "",
            str(trace.length),
            milliseconds(took),
        ]
    return table


def latency(shared, view, masked):
    """Median seconds of a warm pass over the view's texts; measured once for each text of a visit."""
    key = (shared.name, view.precision, view.a, view.b, masked)
    kept = st.session_state.setdefault("_latencies", {})
    if key not in kept:
        if len(kept) > 20:
            kept.clear()
        kept[key] = shared.latency(view.a, view.b, masked)
    return kept[key]


def spread(pair, traces):
    """Mean entropy of the attention in every layer of both models: dict from title to float [L]."""
    profiles = {}
    for shared, trace in zip(pair, traces):
        name = title(shared.name) + (" " if title(shared.name) in profiles else "")
        profiles[name] = summarise_heads(trace).entropy.mean(axis=1)
    return profiles
