"""Time-lapse: what the model of each step made of one text."""

import time

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.explain import fill_mask
from bert_tf.plots.training.curves import answer_course
from ui import snippets
from ui.samples.examples import LEARNED
from ui.session import runs, snapshot_store, state
from ui.session.model_store import given
from ui.shell import frame
from ui.widgets import (
    attention_controls,
    components,
    export,
    figures,
    inputs,
    targets,
)
from ui.widgets import (
    head_predictions as heads,
)
from ui.widgets.cards import cards
from ui.widgets.formatting import bold, plain
from ui.widgets.mask_chips import positions

_STEP, _LAYER, _HEAD = "timelapse.at", "timelapse.layer", "timelapse.head"
_PLAY = 0.9  # seconds that one snapshot is shown
_MOST_TOKENS = 128  # all snapshots' attention maps are held at once


class Snapshots:
    """A series of snapshots as the shared parts of the pages take a model."""

    def __init__(self, name, series):
        self.name, self.series, self.tokenizer = name, series, series.tokenizer

    def encode(self, a, b):
        """Pack the texts as the snapshots will read them."""
        return self.tokenizer.encode(a, self.given(b), max_length=self.series.max_length)

    def given(self, b):
        """Text B as the snapshots take it: None where there is nothing to read."""
        return given(b, self.tokenizer)


def page():
    st.title("How the answer came about", anchor=False)
    known = runs.runs()
    if not known:
        st.info("There is no training to look at. Start one under Curves.", icon=":material/model_training:")
        return
    run = runs.read(runs.picker(known))
    if not run.snapshots:
        st.info(
            "This training has kept no snapshots yet. They come with `pretrain --snapshots`, at the steps 0, 1, 2, 5, "
            "10, 20, 50 and so on.",
            icon=":material/photo_library:",
        )
        return
    inputs.examples(LEARNED)
    inputs.text_fields()
    if not inputs.texts_are_usable():
        return
    shown = snapshot_store.shown(run)
    series = shown and snapshot_store.series(shown)
    if not series:
        return
    shared = Snapshots(run.name, series)
    encoding = inputs.read(shared)
    if encoding is None:
        return
    inputs.token_strip(shared, encoding, "c_timelapse_chips")
    masks = inputs.masked(shared, encoding)
    if masks is None:
        return
    if encoding.length > _MOST_TOKENS:
        st.warning(
            f"This text has {encoding.length} tokens; at most {_MOST_TOKENS} are followed through a training. "
            "Shorten it.",
            icon=":material/content_cut:",
        )
        return
    view = state.view()
    key = (str(run.folder), series.steps, view.a, view.b, positions(encoding, view.masks))
    moments = snapshot_store.moments(series, shown, key, view.a, shared.given(view.b), masks)
    if moments is None:
        return
    playing = st.session_state.get("_timelapse_playing", False)
    st.fragment(_lapse, run_every=_PLAY if playing else None)(run, shared, moments)
    # Outside of what is drawn again by itself: the link leads to another page.
    attention_controls.warning_link()
    st.caption(
        "One text in one training: with another seed, or another order of its texts, the same comes at other steps. That "
        "a guess is right here does not say that the rule behind it was learnt."
    )
    st.caption(f"{plain(run.name)} · {runs.facts(run)} · the model in the sidebar plays no part here")


def _lapse(run, shared, moments):
    number = _number(moments)
    moment = moments[number]
    trace = moment.trace
    courses = _courses(shared, moments)
    _time(moments, number)
    left, right = st.columns([1, 1], gap="large")
    with left:
        if "mlm" not in shared.series.heads:
            st.caption("This training has no head for masked words.")
        elif trace.masks:
            components.bars("c_timelapse_bars", cards(fill_mask(trace, shared.tokenizer, state.view().top_k)))
            for course in courses:
                st.markdown(_entered(course))
        else:
            st.info(
                "Nothing is hidden. Press a word above to follow what is guessed there.", icon=":material/touch_app:"
            )
        scores = [] if targets.first_share(trace) is None else [targets.first_share(one.trace) for one in moments]
        if scores:
            heads.pair_verdict("c_timelapse_gauge", trace)
        if trace.replaced is not None:
            with st.container(horizontal=True, horizontal_alignment="right"):
                heads.save_replaced(trace)
            heads.replaced_tokens("c_timelapse_replaced", trace)
        if courses or scores:
            claim = "B follows A" if trace.sop is None else "in order"

            def figure(dark=False):
                return answer_course(courses, shared.series.steps, number, scores, dark, claim=claim)

            with inputs.heading("Over the training"):
                _save(shared, moments, courses, scores, claim, figure)
            figures.show(
                "The answer over the training",
                figure(frame.is_dark()),
                key="w_timelapse_course",
                config=export.plot_config("time-lapse"),
            )
    with right:
        _attention(run, moments, number)
    # Here, as what is moved draws this part alone.
    snippets.draw()
    if not st.session_state.get("_timelapse_playing"):
        # What is moved here runs this part alone, and the address is to follow.
        state.write_address()


def _number(moments):
    """Which snapshot is shown; while it plays, the next one at each tick."""
    steps, last = [moment.step for moment in moments], len(moments) - 1
    wanted = state.setting(_STEP, steps[-1])
    number = steps.index(wanted) if wanted in steps else last
    if st.session_state.get("_timelapse_playing"):
        if time.monotonic() - st.session_state["_timelapse_shown"] < 0.8 * _PLAY:
            return number
        if number == last:
            st.session_state["_timelapse_playing"] = False
            state.rerun()
        number += 1
        st.session_state["_timelapse_shown"] = time.monotonic()
        state.set_setting(_STEP, steps[number], steps[-1])
    return number


def _time(moments, number):
    steps, playing = [moment.step for moment in moments], st.session_state.get("_timelapse_playing", False)
    if len(steps) == 1:
        st.markdown(f"Step {steps[0]:,}, the only snapshot so far.")
        return

    def play():
        st.session_state["_timelapse_playing"] = not playing
        if not playing:
            st.session_state["_timelapse_shown"] = time.monotonic()
            if number == len(steps) - 1:
                state.set_setting(_STEP, steps[0], steps[-1])

    if st.session_state.get("w_timelapse_at") != steps[number]:
        st.session_state["w_timelapse_at"] = steps[number]

    def moved():
        # While it plays a slow browser still sends the step before: that is no visitor's hand.
        if st.session_state.get("_timelapse_playing"):
            return
        state.set_setting(_STEP, st.session_state["w_timelapse_at"], steps[-1])

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if st.button(
            "Pause" if playing else "Play",
            icon=":material/pause:" if playing else ":material/play_arrow:",
            key="w_timelapse_play",
            width="content",
            on_click=play,
        ):
            state.rerun()
        st.select_slider(
            "Step of the training",
            steps,
            key="w_timelapse_at",
            on_change=moved,
            disabled=playing,
            format_func=lambda step: f"{step:,}",
        )


def _courses(shared, moments):
    from bert_tf.explain.models.timelapse import course

    last = moments[-1].trace
    if last.logits is None:
        return []
    return [course(moments, shared.tokenizer, position) for position in last.masks]


def _save(shared, moments, courses, scores, claim, figure):
    steps = [moment.step for moment in moments]
    tokens = [course.token for course in courses]
    ranks, shares = ([getattr(course, of).tolist() for course in courses] for of in ("ranks", "probabilities"))

    def rows():
        for index, step in enumerate(steps):
            numbers = [number for pair in zip(ranks, shares) for number in (pair[0][index], pair[1][index])]
            yield step, *numbers, *scores[index : index + 1]

    export.menu(
        "time-lapse",
        (
            "step",
            *(f"{token}_{of}" for token in tokens for of in ("rank", "probability")),
            *[claim] * bool(len(scores)),
        ),
        rows,
        lambda: {
            "run": shared.name,
            "steps": steps,
            "tokens": tokens,
            "ranks": ranks,
            "probabilities": shares,
            claim: list(scores),
        },
        figure,
        lambda: {
            "steps": np.array(steps),
            "tokens": np.array(tokens),
            "ranks": np.array(ranks),
            "probabilities": np.array(shares),
            "pair": np.array(scores),
        },
    )


def _entered(course):
    """Where a token stands over the training, in a sentence."""
    said = [
        f"in the first {place} at step {step:,}" if place > 1 else f"first at step {step:,}"
        for place, step in course.entered.items()
        if step is not None
    ]
    name = bold(course.token)
    if not said:
        return f"{name} never comes among the first 10; its best rank is {int(course.ranks.min()):,}."
    return f"{name} is {', '.join(said)}."


def _attention(run, moments, number):
    trace, step = moments[number].trace, moments[number].step
    layers, heads = trace.attentions.shape[:2]
    left, right = st.columns(2)
    bounds = ((left, "Layer", _LAYER, layers), (right, "Head", _HEAD, heads))
    for column, label, name, most in bounds:
        if most > 1:
            column.slider(
                label, 1, most, **state.bound_setting(name, f"w_{name.replace('.', '_')}", 1, range(1, most + 1))
            )
    layer, head = (min(max(state.setting(name, 1), 1), most) for _, _, name, most in bounds)
    some = None if len(moments) == len(run.snapshots) else tuple(moment.step for moment in moments)
    snippets.give(run.folder, trace, step, layer - 1, head - 1, some)
    selection = plots.select(trace)
    weights = np.asarray(trace.attentions[layer - 1, head - 1])
    with inputs.heading(f"Layer {layer}, head {head}"):
        attention_controls.save(trace, [(layer - 1, head - 1)], selection, 0.0)
    figures.show(
        f"Attention of layer {layer}, head {head}",
        plots.heatmap(trace, weights, selection, dark=frame.is_dark()),
        key="w_timelapse_map",
        config=export.plot_config(f"layer-{layer}-head-{head}"),
    )
    st.caption(
        "A row is a token that looks, a column one that is looked at; the scale goes to the map's own strongest."
    )
