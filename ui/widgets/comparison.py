"""The comparison of two models: the choice of the two, the rows of the tables, sizes and times."""

import dataclasses
import functools
import re

import streamlit as st

from ui.samples.examples import FIRST
from ui.session import jobs, model_store, runs, state, task_models
from ui.shell import catalogue
from ui.widgets.formatting import megabytes, milliseconds, replaced, title

RECOMMENDED = ("bert-base-uncased", "bert-large-uncased")
_LARGE, _SMALL = 24, "bert-small-uncased-embedded"
_SIZED = re.compile(r"bert-(base|large)-(cased|uncased)(-embedded|-whole-word-masking)?")
# The settings that name a page's two models in a link if they are not the view's models: snapshots, or the preset pair.
_PICKED = ("one", "other")
# In the session: the page of a link, the missing models that it asks for, and the models in their place.
_ASKED = "_compared_models_of_link"


class LockedPerTrace:
    """A `Bert` whose shared model is locked for one trace at a time, so that other visitors can use it in between."""

    def __init__(self, shared):
        self._shared, bert = shared, shared.bert
        self.tokenizer, self.config, self.heads, self.name = bert.tokenizer, bert.config, bert.heads, bert.name
        self.max_length = bert.max_length

    def trace(self, *args, **kwargs):
        return self._shared.run(lambda bert: bert.trace(*args, **kwargs))


def default_models(installed, view):
    """The two models to compare: those of the view, else Base with Large or Small, else any installed ones.

    Args:
        installed: ``ModelInfo``s of the installed models, the default first.
        view: the visitor's view.

    Returns:
        (name, name): the visitor's model and another, or the two of ``RECOMMENDED``.
    """
    names = [info.name for info in installed]
    if view.other in names:
        return view.model, view.other
    other_size = _of_other_size(view.model, names)
    if other_size is None and set(RECOMMENDED) <= set(names):
        return RECOMMENDED
    others = [info for info in installed if info.name != view.model]
    large = [info.name for info in others if info.config and info.config.num_hidden_layers == _LARGE]
    bert = [name for name in large if _SIZED.fullmatch(name)]
    rest = [info.name for info in others]
    small = [_SMALL] if _SMALL in rest else []
    return view.model, next(iter([*filter(None, [other_size]), *bert, *large, *small, *rest]), view.model)


def _of_other_size(name, names):
    """The BERT Large of the same case as a BERT Base, or the Base of a Large; None if it is not among ``names``."""
    size, case = match.group(1, 2) if (match := _SIZED.fullmatch(name)) else (None, None)
    other_size = {"base": "large", "large": "base"}.get(size)
    matching = [
        other for other in names if (match := _SIZED.fullmatch(other)) and match.group(1, 2) == (other_size, case)
    ]
    return min(matching, key=len, default=None)


def has_two_models(installed):
    """Whether there are two models, or a model and a snapshot of a training, to compare."""
    return len(installed) > 1 or bool(installed and runs.snapshots())


def pickers(installed, page):
    """Draw the choice of two models or snapshots, bound to the view and to the page's settings.

    Args:
        installed: see ``default_models``. page: name of the page.

    Returns:
        (name, name) of the chosen models or snapshots.
    """
    names = [info.name for info in installed]
    asked = _take_asked_models(page)
    _set_default_models(installed, names, page)
    offered = [*names, *runs.snapshots()]
    chosen = compared_models(state.view(), page)
    labels = ("One model", "The other")
    for column, label, field, place, name in zip(st.columns(2), labels, ("model", "other"), _PICKED, chosen):
        key = f"w_{page}_{field}"
        state.set_widget(key, name)
        place = f"{page}.{place}"
        column.selectbox(label, offered, format_func=title, key=key, on_change=_picked, args=(key, field, place, names))
    note_replaced(page, asked, chosen)
    if chosen[0] == chosen[1]:
        st.caption("Both are the same model.")
    return chosen


def _take_asked_models(page):
    """The names of the two models in the link, "" for none. Unknown ones are removed from the page's settings."""
    view = state.view()
    one, other = (view.setting(f"{page}.{place}") or "" for place in _PICKED)
    known = _known() if one or other else ()
    for place, name in zip(_PICKED, (one, other)):
        if name not in known:
            view = view.with_setting(f"{page}.{place}", None)
    state.correct_view(settings=view.settings)
    return one, other or view.other


def note_replaced(page, asked, used):
    """Warn of each model of the link that is not here, as long as the page shows the one that is used in its place.

    Args:
        page: name of the page. asked: names of the link's models before missing ones were replaced, "" for none.
        used: names of the models that the page shows.
    """
    missing = tuple("" if name in used else name for name in asked)
    known = _known() if any(missing) else ()  # it reads folders
    missing = tuple("" if name in known else name for name in missing)
    if any(missing):
        st.session_state[_ASKED] = (page, missing, used)
    asked_page, missing, used_before = st.session_state.get(_ASKED, ("", (), ()))
    for name, before, now in zip(missing, used_before, used):
        if name and (asked_page, before) == (page, now):
            st.warning(replaced("snapshot" if "/" in name else "model", name, title(now)))


def second_model_picker(installed, key):
    """Draw the choice of a second model beside the view's, bound to the view.

    Args:
        installed: see ``default_models``. key: of the widget.
    """
    names = [info.name for info in installed]
    state.set_widget(key, state.view().other)

    def picked():
        if st.session_state[key] in names:
            state.change_view(other=st.session_state[key])

    st.selectbox(
        "Second model", names, format_func=title, key=key, on_change=picked, label_visibility="collapsed", width=320
    )


def _set_default_models(installed, names, page):
    """If no models are chosen yet, choose ``default_models``; the view's model for other pages does not change."""
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
    """The view with another model for all pages; if the open page compares models, it is the first of its two.

    An example that does not suit the model is replaced, see ``task_models.with_example``.
    """
    view = dataclasses.replace(view, model=name).with_setting(f"{view.page}.{_PICKED[0]}", None)
    return task_models.with_example(view, catalogue.pages()[view.page].example or FIRST)


def _known():
    """The names of all models and snapshots that may be compared."""
    return {*(info.name for info in model_store.installed()), *runs.snapshots()}


def _picked(key, field, place, names):
    name = st.session_state[key]
    if name in names:
        state.change_view(**{field: name})
    state.set_setting(place, "" if name in names else name, "")


def compared_models(view, page):
    """The names of a page's two models or snapshots; the view's model replaces one that is not installed."""
    picked = [view.setting(f"{page}.{place}") for place in _PICKED]
    known = _known() if any(picked) else ()
    return tuple(pick if pick in known else model for pick, model in zip(picked, (view.model, view.other)))


def with_compared_models(view, one, other):
    """The view of the page Side by side with two models and the view's texts; the view's model does not change.

    Args:
        view: ``View``. one, other: names of models or snapshots.
    """
    models = view.model, view.other
    for place, name, model in zip(_PICKED, (one, other), models):
        view = view.with_setting(f"side_by_side.{place}", None if name == model else name)
    return dataclasses.replace(view.with_setting("side_by_side.what", None), page="side_by_side")


def agreement_rows(comparison, traces):
    """The agreement of two models at every mask: a dict of a table's columns.

    Args:
        comparison: ``Comparison``. traces: the traces of the two models.
    """

    def word(trace, position):
        typed = trace.original_tokens[position] == trace.tokens[position]
        return "[MASK]" if typed else trace.original_tokens[position]

    def words(mask):
        pair = [word(trace, at) for trace, at in zip(traces, (mask.position_a, mask.position_b))]
        return pair[0] if pair[0].lower() == pair[1].lower() else " | ".join(pair)

    return {
        "masked": [words(mask) for mask in comparison.masks],
        "one": [mask.predictions_a[0].token for mask in comparison.masks],
        "other": [mask.predictions_b[0].token for mask in comparison.masks],
        "shared": [mask.overlap for mask in comparison.masks],
        "divergence": [mask.divergence for mask in comparison.masks],
    }


def shared_predictions(comparison, pair, side):
    """The predictions of one side that the other side has too: dict from a mask's position to a set of tokens.

    Args:
        comparison: ``Comparison``. pair: the two ``Side``s. side: "a" or "b".
    """
    shared, order, fold = {}, slice(None, None, 1 if side == "a" else -1), comparison.case_folded
    own_tokenizer, other_tokenizer = [compared.shared.tokenizer for compared in pair][order]
    for mask in comparison.masks:
        own, other = (mask.predictions_a, mask.predictions_b)[order]
        spellings = {_spelling(prediction.token, other_tokenizer, fold) for prediction in other}
        position = mask.position_a if side == "a" else mask.position_b
        shared[position] = {
            prediction.token for prediction in own if _spelling(prediction.token, own_tokenizer, fold) in spellings
        }
    return shared


def layer_rows(lenses, pair, layers, case_folded):
    """The most probable words of two lenses at the same relative depth, the embeddings first.

    Args:
        lenses: two ``Lens``es of one position each. pair: the ``Side``s of the lenses. layers: pairs of layers from 0.
        case_folded: whether upper and lower case count as the same.

    Returns:
        list of (hidden state, hidden state, word, probability, word, probability, whether the words are the same).
    """
    rows = []
    for states in [(0, 0), *((layer + 1, other_layer + 1) for layer, other_layer in layers)]:
        best = [
            (lens.predicted_tokens[0][state][0], float(lens.probabilities[0, state, 0]))
            for lens, state in zip(lenses, states)
        ]
        spellings = {_spelling(token, side.shared.tokenizer, case_folded) for (token, _), side in zip(best, pair)}
        rows.append((*states, *best[0], *best[1], len(spellings) == 1))
    return rows


def _spelling(token, tokenizer, case_folded):
    """The spelling of a token, by which tokens of two vocabularies are compared."""
    return tokenizer.spelling(token).lower() if case_folded else tokenizer.spelling(token)


def model_facts(pair, traces, infos, seconds):
    """The sizes and times of two models: a dict of a table's columns; the first has the names of the rows.

    Args:
        pair: ``Side``s. traces: their traces. infos: dict from a model's name to its ``ModelInfo``.
        seconds: of a pass of each model; None before they are measured.
    """
    rows = [
        "Layers × heads",
        "Hidden size",
        "Parameters",
        "Weights in memory",
        "On disk",
        "Tokens here",
        "Time for this text",
    ]
    columns = []
    for side, trace, took in zip(pair, traces, seconds or (None, None)):
        shared = side.shared
        config, info = shared.config, infos.get(shared.name)
        column = [
            f"{config.num_hidden_layers} × {config.num_attention_heads}",
            str(config.hidden_size),
            f"{shared.parameters / 1e6:.1f} million",
            megabytes(shared.weight_bytes),
            megabytes(info.size_bytes) if info else "",
            str(trace.length),
            "…" if took is None else milliseconds(took),
        ]
        columns.append(column)
    return {"": rows, **by_name(pair, columns)}


def latencies(pair, precision):
    """Median seconds of a warm pass over each side's texts, measured in a background job; None before it is done.

    Args:
        pair: ``Side``s. precision: the precision of the models.
    """

    def work(progress):
        medians = []
        for place, side in enumerate(pair):
            passes = functools.partial(_report_passes, progress, place, len(pair))
            medians.append(side.shared.latency(side.text_a, side.text_b, progress=passes))
        return medians

    key = (precision, *((side.shared.name, side.text_a, side.text_b) for side in pair))
    return jobs.result("compare speed", key, "Timing", work, patience=0, skeleton=False)


def _report_passes(progress, place, sides, done, total):
    """Report the passes of the side number ``place`` to ``progress`` as a part of the passes of all ``sides``."""
    return progress(place * total + done, sides * total)


def by_name(pair, values):
    """A dict from the name of each side to its value; a second side with the same name has a space after it."""
    first, second = (side.name for side in pair)
    return dict(zip((first, second + " " * (first == second)), values))
