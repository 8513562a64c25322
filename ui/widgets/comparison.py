"""What the pages that compare two models work out before they draw."""

import dataclasses
import functools
import re

import streamlit as st

from bert_tf.explain import summarise_heads
from ui.session import (
    jobs,
    model_store,
    runs,
    state,
)
from ui.widgets.formatting import megabytes, milliseconds, title

RECOMMENDED = ("bert-base-uncased", "bert-large-uncased")
_LARGE, _SMALL = 24, "bert-small-uncased-embedded"
_SIZED = re.compile(r"bert-(base|large)-(cased|uncased)(-embedded|-whole-word-masking)?")
# The page's settings that name its sides in a link where they are not the view's models: snapshots, or the preset.
_PICKED = ("one", "other")


def default_models(installed, view):
    """Which two models to compare: those the view names, else Base beside Large or Small, else what there is.

    Args:
        installed: ``ModelInfo`` of the models there are, the default first.
        view: the visitor's view.

    Returns:
        (name, name): the visitor's own model and another, or the two of ``RECOMMENDED``.
    """
    names = [info.name for info in installed]
    if view.other in names:
        return view.model, view.other
    fair = _of_other_size(view.model, names)
    if fair is None and set(RECOMMENDED) <= set(names):
        return RECOMMENDED
    others = [info for info in installed if info.name != view.model]
    large = [info.name for info in others if info.config and info.config.num_hidden_layers == _LARGE]
    bert = [name for name in large if _SIZED.fullmatch(name)]
    rest = [info.name for info in others]
    small = [_SMALL] if _SMALL in rest else []
    return view.model, next(iter([*filter(None, [fair]), *bert, *large, *small, *rest]), view.model)


def _of_other_size(name, names):
    """The Large that goes with a BERT Base, or the Base with a Large: of the same case; None where there is none."""
    size, case = match.group(1, 2) if (match := _SIZED.fullmatch(name)) else (None, None)
    wanted = {"base": "large", "large": "base"}.get(size)
    found = [one for one in names if (match := _SIZED.fullmatch(one)) and match.group(1, 2) == (wanted, case)]
    return min(found, key=len, default=None)


def has_two_models(installed):
    """Whether there are two models, or a model and a snapshot of a training, to put side by side."""
    return len(installed) > 1 or bool(installed and runs.snapshots())


def pickers(installed, page):
    """The choice of two models or snapshots, tied to the view and the page's settings.

    Args:
        installed: as ``default_models`` takes it. page: name of the page.

    Returns:
        (name, name).
    """
    names = [info.name for info in installed]
    _settle(installed, names, page)
    offered = [*names, *runs.snapshots()]
    wanted = compared_models(state.view(), page)
    labels = ("One model", "The other")
    for column, label, field, place, name in zip(st.columns(2), labels, ("model", "other"), _PICKED, wanted):
        key = f"w_{page}_{field}"
        state.set_widget(key, name)
        place = f"{page}.{place}"
        column.selectbox(label, offered, format_func=title, key=key, on_change=_picked, args=(key, field, place, names))
    if wanted[0] == wanted[1]:
        st.caption("Both are the same model.")
    return wanted


def _settle(installed, names, page):
    """Where nothing is chosen yet, put the preset there: the visitor's own model stays what it is for other pages."""
    view, known = state.view(), _known()
    picked = [view.setting(f"{page}.{place}") in known for place in _PICKED]
    if view.other in names or all(picked):
        return
    one, other = default_models(installed, view)
    if one == view.model or any(picked):
        state.correct_view(other=other)
        return
    for place, name in zip(_PICKED, (one, other)):
        view = view.with_setting(f"{page}.{place}", name)
    state.correct_view(settings=view.settings)


def with_model(view, name):
    """The view with another model chosen for all pages: the open page's first side is it too."""
    return dataclasses.replace(view, model=name).with_setting(f"{view.page}.{_PICKED[0]}", None)


def _known():
    """Names that a side may have."""
    return {*(info.name for info in model_store.installed()), *runs.snapshots()}


def _picked(key, field, place, names):
    name = st.session_state[key]
    if name in names:
        state.change_view(**{field: name})
    state.set_setting(place, "" if name in names else name, "")


def compared_models(view, page):
    """Names of the two models or snapshots of a page; one that is not there leaves the view's model in its place."""
    picked = [view.setting(f"{page}.{place}") for place in _PICKED]
    known = _known() if any(picked) else ()
    return tuple(one if one in known else name for one, name in zip(picked, (view.model, view.other)))


def with_compared_models(view, one, other):
    """The view of Compare with two models on the view's texts; the visitor's own model stays.

    Args:
        view: ``View``. one, other: names of models or snapshots.
    """
    own = view.model, view.other
    for place, name, model in zip(_PICKED, (one, other), own):
        view = view.with_setting(f"side_by_side.{place}", None if name == model else name)
    return dataclasses.replace(view.with_setting("side_by_side.what", None), page="side_by_side")


def agreement_rows(found, traces):
    """The agreement at every mask as columns of a table."""

    def word(trace, position):
        typed = trace.original_tokens[position] == trace.tokens[position]
        return "[MASK]" if typed else trace.original_tokens[position]

    def words(mask):
        pair = [word(trace, at) for trace, at in zip(traces, (mask.position_a, mask.position_b))]
        return pair[0] if pair[0].lower() == pair[1].lower() else " | ".join(pair)

    return {
        "masked": [words(mask) for mask in found.masks],
        "one": [mask.predictions_a[0].token for mask in found.masks],
        "other": [mask.predictions_b[0].token for mask in found.masks],
        "shared": [mask.overlap for mask in found.masks],
        "divergence": [mask.divergence for mask in found.masks],
    }


def shared_guesses(found, pair, side):
    """For every mask of one side the guesses that the other has too: dict from position to set of tokens.

    Args:
        found: ``Comparison``. pair: the two sides. side: "a" or "b".
    """
    named, order = {}, slice(None, None, 1 if side == "a" else -1)
    own_tokenizer, other_tokenizer = [one.shared.tokenizer for one in pair][order]
    for mask in found.masks:
        own, other = (mask.predictions_a, mask.predictions_b)[order]
        known = {_plain(one.token, other_tokenizer, found.case_folded) for one in other}
        position = mask.position_a if side == "a" else mask.position_b
        named[position] = {one.token for one in own if _plain(one.token, own_tokenizer, found.case_folded) in known}
    return named


def layer_rows(lenses, pair, layers, case_folded):
    """The likeliest words of two lenses at the same relative depth, the embeddings first.

    Args:
        lenses: two ``Lens``es of one position each. pair: the sides they are of. layers: pairs of layers from
            0. case_folded: whether upper and lower case are one.

    Returns:
        list of (state, state, word, probability, word, probability, whether the words are the same).
    """
    rows = []
    for states in [(0, 0), *((one + 1, other + 1) for one, other in layers)]:
        best = [
            (lens.predicted_tokens[0][state][0], float(lens.probabilities[0, state, 0]))
            for lens, state in zip(lenses, states)
        ]
        same = len({_plain(one[0], side.shared.tokenizer, case_folded) for one, side in zip(best, pair)}) == 1
        rows.append((*states, *best[0], *best[1], same))
    return rows


def _plain(token, tokenizer, case_folded):
    """A token as it compares between vocabularies."""
    return tokenizer.spelling(token).lower() if case_folded else tokenizer.spelling(token)


def model_facts(pair, traces, infos, seconds):
    """Sizes and times of both models: a dict of columns, the first the names of the rows.

    ``seconds``: of a pass of each, or None while they are not known.
    """
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
    for side, trace, took in zip(pair, traces, seconds or (None, None)):
        shared = side.shared
        config, info = shared.config, infos.get(shared.name)
        column = side.name + (" " if side.name in table else "")
        table[column] = [
            f"{config.num_hidden_layers} × {config.num_attention_heads}",
            str(config.hidden_size),
            f"{shared.parameters / 1e6:.1f} million",
            megabytes(shared.weight_bytes),
            megabytes(info.size_bytes) if info else "",
            str(trace.length),
            "…" if took is None else milliseconds(took),
        ]
    return table


def latencies(pair, precision):
    """Median seconds of a warm pass over each side's texts, timed beside the page; None while they are not there.

    Args:
        pair: ``Side``s. precision: what the models compute in.
    """

    def work(progress):
        found = []
        for place, side in enumerate(pair):
            passes = functools.partial(_after, progress, place, len(pair))
            found.append(side.shared.latency(side.text_a, side.text_b, progress=passes))
        return found

    key = (precision, *((side.shared.name, side.text_a, side.text_b) for side in pair))
    return jobs.result("compare speed", key, "Timing", work, patience=0)


def _after(progress, place, sides, done, total):
    """Tells ``progress`` of the passes of one side what that is of the passes of all ``sides``."""
    return progress(place * total + done, sides * total)


def attention_entropy(pair, traces):
    """Mean entropy of the attention in every layer of both models: dict from title to float [L]."""
    profiles = {}
    for side, trace in zip(pair, traces):
        name = side.name + (" " if side.name in profiles else "")
        profiles[name] = summarise_heads(trace).entropy.mean(axis=1)
    return profiles
