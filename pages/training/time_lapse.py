"""Time-lapse: the predictions for one text by the model of each step of a training."""

import dataclasses
import time

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.explain.models.time_lapse import time_lapse_of, token_trajectory
from bert_tf.inference.predictions import fill_mask
from bert_tf.plots.training.curves import answer_trajectory
from pages.training.snippets.time_lapse import snippet
from ui.elements import components
from ui.elements.cards import cards
from ui.elements.mask_chips import token_positions
from ui.samples.examples import LEARNED
from ui.session import runs, snapshot_store, state, training_jobs
from ui.session.model_store import text_b_or_none
from ui.shell import error_messages, snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, export, figures, inputs, targets
from ui.widgets import head_predictions as heads
from ui.widgets.formatting import bold, escape_markdown

PAGE = Page(
    name="time_lapse",
    group="Training",
    order=2,
    title="Time-lapse",
    question="How a prediction changes during the training",
    terms="snapshots checkpoints pretraining learning over time",
    summary=(
        "one text through the snapshots of a run: predictions, the score of the pair (next sentence or "
        "sentence order), replaced tokens, a head's map at each step, and the step at which the final prediction "
        "first reached rank 10, 5 and 1"
    ),
    presses={"": Press("choice: Examples: Born|Won", of_texts=False)},
    analyses=("time-lapse",),
    example=LEARNED[0],
    settings=("run", "at", "layer", "head"),
    settings_help="name of a run, as of `training_curves`; step of the snapshot, open head from 1",
    opens_rows=True,
    is_available=lambda: bool(runs.snapshots()),
    snippet=snippet,
)


_STEP, _LAYER, _HEAD = "time_lapse.at", "time_lapse.layer", "time_lapse.head"
_PLAY = 0.9  # seconds for which one snapshot is shown
_MOST_TOKENS = 128  # the attention maps of all snapshots are in memory at once


class SnapshotModels:
    """A series of snapshots with the attributes of a ``SharedModel`` that the inputs of a page use."""

    def __init__(self, name, series):
        self.name, self.series, self.tokenizer = name, series, series.tokenizer

    def encode(self, a, b):
        """The ``Encoding`` of the texts for the snapshots."""
        return self.tokenizer.encode(a, self.text_b_or_none(b), max_length=self.series.max_length)

    def text_b_or_none(self, b):
        """Text B; None if the tokenizer finds no token in it."""
        return text_b_or_none(b, self.tokenizer)


def page():
    training_jobs.discard_failed()
    known = runs.runs()
    if not known:
        st.info("There is no training to look at. Start one under Training curves.", icon=":material/model_training:")
        return
    run = runs.read(runs.run_picker(known))
    if not run.snapshots:
        st.info(
            "This training has saved no snapshots. Those that are started under Training curves save them at the "
            "steps 0, 1, 2, 5, 10, 20, 50 and so on.",
            icon=":material/photo_library:",
        )
        return
    inputs.examples(LEARNED)
    inputs.text_fields()
    if not inputs.texts_are_usable():
        return
    held_snapshots = snapshot_store.held_snapshots(run)
    series = held_snapshots and snapshot_store.series(held_snapshots)
    if not series:
        return
    shared = SnapshotModels(run.name, series)
    encoding = inputs.encode_texts(shared)
    if encoding is None:
        return
    inputs.token_strip(shared, encoding, "c_time_lapse_chips")
    masks = inputs.masked_positions(shared, encoding)
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
    key = (str(run.folder), series.steps, view.a, view.b, token_positions(encoding, view.masks))
    snapshot_traces = snapshot_store.snapshot_traces(
        series, held_snapshots, key, view.a, shared.text_b_or_none(view.b), masks
    )
    if snapshot_traces is None:
        return
    playing = st.session_state.get("_time_lapse_playing", False)
    error_messages.fragment(_lapse, run_every=_PLAY if playing else None)(run, shared, snapshot_traces)


def _lapse(run, shared, snapshot_traces):
    number = _number(snapshot_traces)
    moment = snapshot_traces[number]
    # What is saved names the run and the step.
    trace = dataclasses.replace(moment.trace, model=f"{run.name}/step-{moment.step}")
    token_trajectories = _trajectories(shared, snapshot_traces)
    _time(snapshot_traces, number)
    with st.container(key="wide_columns"):
        left, right = st.columns([1, 1], gap="large")
    with left:
        if "mlm" not in shared.series.heads:
            st.caption("This training has no head for masked words.")
        elif trace.masks:
            components.bars("c_time_lapse_bars", cards(fill_mask(trace, shared.tokenizer, state.view().top_k)))
            for token_trajectory in token_trajectories:
                st.markdown(_entered(token_trajectory))
        else:
            st.info(
                "Nothing is hidden. Press a word above to follow what is predicted there.", icon=":material/touch_app:"
            )
        scores = (
            []
            if targets.first_answer_probability(trace) is None
            else [targets.first_answer_probability(one.trace) for one in snapshot_traces]
        )
        if scores:
            heads.pair_prediction("c_time_lapse_gauge", trace)
        if trace.replaced is not None:
            heads.save_replaced(trace)
            heads.replaced_tokens("c_time_lapse_replaced", trace)
        if token_trajectories or scores:
            claim = "B follows A" if trace.sop is None else "in order"

            def figure(dark=False):
                return answer_trajectory(token_trajectories, shared.series.steps, number, scores, dark, claim=claim)

            inputs.heading("Over the training")
            result = time_lapse_of(run.name, shared.tokenizer, snapshot_traces, top_k=state.view().top_k)
            export.save("time-lapse", result, texts=export.texts_of(trace))
            figures.show(
                "The prediction over the training",
                figure(state.is_dark()),
                key="w_time_lapse_course",
                config=export.plot_config("time-lapse"),
            )
    with right:
        _attention(run, snapshot_traces, moment.step, trace)
    attention_controls.warning()
    st.caption(
        "One text in one training: with another seed, or another order of the training texts, a prediction comes at "
        "other steps. A right prediction does not show that the model learnt the rule behind it."
    )
    st.caption(f"{escape_markdown(run.name)} · {runs.describe_run(run)} · the model in the sidebar is not used here")
    # In the fragment, whose widgets run it alone, and below all else, as on other pages.
    with st.container(horizontal=True, gap="small"):
        export.draw(*export.take())
        snippets.draw(snippets.take())
    if not st.session_state.get("_time_lapse_playing"):
        # The widgets run this fragment alone, and the address must follow their values.
        state.write_address()


def _number(snapshot_traces):
    """The index of the snapshot that is shown; while the time-lapse plays, the next one at each run."""
    steps, last = [moment.step for moment in snapshot_traces], len(snapshot_traces) - 1
    wanted = state.setting(_STEP, steps[-1])
    number = steps.index(wanted) if wanted in steps else last
    if st.session_state.get("_time_lapse_playing"):
        if time.monotonic() - st.session_state["_time_lapse_shown"] < 0.8 * _PLAY:
            return number
        if number == last:
            st.session_state["_time_lapse_playing"] = False
            state.rerun()
        number += 1
        st.session_state["_time_lapse_shown"] = time.monotonic()
        state.set_setting(_STEP, steps[number], steps[-1])
    return number


def _time(snapshot_traces, number):
    steps, playing = [moment.step for moment in snapshot_traces], st.session_state.get("_time_lapse_playing", False)
    if len(steps) == 1:
        st.markdown(f"Step {steps[0]:,}, the only snapshot so far.")
        return

    def play():
        st.session_state["_time_lapse_playing"] = not playing
        if not playing:
            st.session_state["_time_lapse_shown"] = time.monotonic()
            if number == len(steps) - 1:
                state.set_setting(_STEP, steps[0], steps[-1])

    if st.session_state.get("w_time_lapse_at") != steps[number]:
        st.session_state["w_time_lapse_at"] = steps[number]

    def moved():
        # While the time-lapse plays, a slow browser still sends the previous step, which is no choice of the visitor.
        if st.session_state.get("_time_lapse_playing"):
            return
        state.set_setting(_STEP, st.session_state["w_time_lapse_at"], steps[-1])

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if st.button(
            "Pause" if playing else "Play",
            icon=":material/pause:" if playing else ":material/play_arrow:",
            key="w_time_lapse_play",
            width="content",
            on_click=play,
        ):
            state.rerun()
        st.select_slider(
            "Step of the training",
            steps,
            key="w_time_lapse_at",
            on_change=moved,
            disabled=playing,
            format_func=lambda step: f"{step:,}",
        )


def _trajectories(shared, snapshot_traces):
    last = snapshot_traces[-1].trace
    if last.logits is None:
        return []
    return [token_trajectory(snapshot_traces, shared.tokenizer, position) for position in last.masks]


def _entered(token_trajectory):
    """A sentence: the steps at which a token reached rank 10, 5 and 1."""
    # Of several ranks reached at one step the best counts.
    places = {step: place for place, step in token_trajectory.first_step_within_rank.items() if step is not None}
    milestones = [
        f"in the first {place} at step {step:,}" if place > 1 else f"first at step {step:,}"
        for step, place in places.items()
    ]
    name = bold(token_trajectory.token)
    if not milestones:
        return f"{name} never comes among the first 10; its best rank is {int(token_trajectory.ranks.min()):,}."
    return f"{name} is {', '.join(milestones)}."


def _attention(run, snapshot_traces, step, trace):
    """Draw a head's attention; trace: that of the snapshot at the step ``step``."""
    layers, heads = trace.attentions.shape[:2]
    left, right = st.columns(2)
    bounds = ((left, "Layer", _LAYER, layers), (right, "Head", _HEAD, heads))
    for column, label, name, most in bounds:
        if most > 1:
            column.slider(
                label, 1, most, **state.bind_setting(name, f"w_{name.replace('.', '_')}", 1, range(1, most + 1))
            )
    layer, head = (min(max(state.setting(name, 1), 1), most) for _, _, name, most in bounds)
    some = None if len(snapshot_traces) == len(run.snapshots) else tuple(moment.step for moment in snapshot_traces)
    snippets.give(run.folder, trace, step, layer - 1, head - 1, some)
    selection = plots.select(trace)
    weights = np.asarray(trace.attentions[layer - 1, head - 1])
    inputs.heading(f"Layer {layer}, head {head}")
    attention_controls.save(trace, [(layer - 1, head - 1)], selection, 0.0)
    figures.show(
        f"Attention of layer {layer}, head {head}",
        plots.heatmap(trace, weights, selection, dark=state.is_dark()),
        key="w_time_lapse_map",
        config=export.plot_config(f"layer-{layer}-head-{head}"),
    )
    st.caption(
        "A row is a token that attends, a column a token attended to. The scale ends at the greatest weight of the map."
    )
