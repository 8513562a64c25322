"""Contributions: how much the input, each head and each feed-forward block add to the answer directly."""

import math

import numpy as np
import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import contributions
from bert_tf.explain.interventions.contributions import is_only_class
from bert_tf.plots.numbers import percent
from bert_tf.plots.ranked_bars import LONGEST_LIST, ranked_bars
from pages.explain import ablation_parts
from pages.explain.snippets.contributions import snippet
from ui.session import calls, state
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import bold, escape_markdown, number, signed

PAGE = Page(
    name="contributions",
    group="Explain",
    order=3,
    title="Contributions",
    question="What each part adds to the answer",
    terms="direct logit attribution residual stream heads MLP decomposition ALTI",
    summary=(
        "the last hidden state that the answer is read from, taken apart: what the input, every head, every "
        "feed-forward block and the biases put into a masked word, a verdict on the pair, a token's being "
        "replaced or a fine-tuned class directly, as a map and ranked; a press on a part leads to where it "
        "looks, or switches it off"
    ),
    presses={"": Press("chip", MASKED)},
    analyses=("contributions",),
    settings=("of", "token", "at", "follows", "label", "part", "kind"),
    settings_help=(
        "as of `saliency`; the open part, `12-11` or `12-f`; `blocks` for the list of blocks, input and biases"
    ),
    opens_rows=True,
    snippet=snippet,
    in_float32=True,
)


_PATIENCE = 1.0  # seconds to wait before a progress bar is drawn: embedded Base needs half a second for a short text
_KINDS = {"heads": "Heads", "blocks": "Blocks, input and biases"}


def page():
    page_inputs = targets.page_inputs()
    if page_inputs is None:
        return
    shared, _, trace = page_inputs
    target = targets.target_picker("contributions", shared, trace)
    if target is None:
        return
    if is_only_class(shared.bert, target):
        targets.say_only_class(target.label)
        return
    call = Call.of(contributions, target=target)
    snippets.give(shared, trace, call)
    label = "Taking the last hidden state apart"
    result = calls.job_result(shared, call, trace, label=label, patience=_PATIENCE)
    if result is None:
        return
    left, right = st.columns([6, 5], gap="large")
    with left:
        _grid(trace, result)
    with right:
        _ranked(result)
    st.caption(
        f"A share estimates how much a part adds directly to “{escape_markdown(target.label)}”. Ablation and Patching "
        "show a part's full effect, with what later layers make of it.",
        help="The answer is read from the last hidden state. This hidden state is exactly the sum of what all parts "
        "add to it, with the standard deviation of each normalisation fixed at its value in this pass. A share "
        f"is the product of a part and the gradient of the {_scored(target)} at that hidden state. It is a "
        "first-order estimate, as the step from there to the answer is not linear.",
    )


def _scored(target):
    return "value" if target.is_regression else "log-odds"


def _unit(target):
    return "of the value" if target.is_regression else "nats of log-odds"


def _grid(trace, result):
    inputs.heading("Layer by part")
    export.save("contributions", result, trace=trace)
    st.markdown(_sums(result))
    picked_cell = ablation_parts.draw_shares(
        "c_contributions",
        "Heads and feed-forward blocks by layers, coloured by their shares: press one to see its pages.",
        _shares(result),
        lambda cell: _summary(result, cell),
        "contributions.part",
        np.abs(result.heads),
        ("opposes the answer", "supports it"),
    )
    _open(result, picked_cell)


def _shares(result):
    """The shares of the heads, then of the feed-forward block, float64 [L, N + 1]."""
    return np.column_stack([result.heads, result.feed_forward])


def _sums(result):
    target, label = result.target, bold(result.target.label)
    if target.is_regression:
        score_sentence = f"The value is {number(result.score, 3)}."
    else:
        share = 0.5 * (1 + math.tanh(0.5 * result.score))
        score_sentence = f"{label} has {percent(share)}, log-odds of {signed(result.score)}."
    groups = {
        "heads": result.heads.sum(),
        "feed-forward blocks": result.feed_forward.sum(),
        "the input": result.input,
        "biases": result.biases,
    }
    group_sums = ", ".join(f"{name} {signed(value)}" for name, value in groups.items())
    rest = f"the step from the last hidden state to the answer adds the rest, {signed(result.score - result.total)}"
    return f"{score_sentence} The parts add up to {signed(result.total)} ({group_sums}); {rest}."


def _summary(result, cell):
    heads = result.heads.shape[1]
    return (
        f"{ablation_parts.name(*cell, heads).capitalize()}: {signed(_shares(result)[cell], 3)} {_unit(result.target)}"
    )


def _open(result, cell):
    """Draw the chosen part's share, with buttons to the pages that show more of it."""
    layer, column = cell
    heads = result.heads.shape[1]
    st.markdown(_summary(result, cell))
    with st.container(horizontal=True, gap="medium"):
        if column < heads:
            ablation_parts.look_button("w_contributions_look", layer, column)

        def switch_off():
            off = ablation_parts.cells_as_text([cell], heads)
            state.change_view(page="ablation")
            state.set_setting("ablation.off", off, "")

        st.button(
            "Switch it off",
            icon=":material/arrow_forward:",
            type="tertiary",
            key="w_contributions_off",
            on_click=switch_off,
        )


def _kind():
    kind = state.setting("contributions.kind", "heads")
    return kind if kind in _KINDS else "heads"


def _named(result, kind):
    """The parts of one kind as pairs (name, share), the strongest first."""
    layers, heads = result.heads.shape
    if kind == "heads":
        shares = {
            ablation_parts.name(layer, head, heads): result.heads[layer, head]
            for layer, head in np.ndindex(layers, heads)
        }
    else:
        shares = {f"layer {layer}, feed-forward": share for layer, share in enumerate(result.feed_forward, start=1)}
        shares |= {"the input": result.input, "biases": result.biases}
    return sorted(shares.items(), key=lambda name_and_share: -abs(name_and_share[1]))


def _bars(result, kind, dark=False):
    names, values = zip(*_named(result, kind)[:LONGEST_LIST])
    return ranked_bars(names, values, f"share, {_unit(result.target)}", dark)


def _ranked(result):
    inputs.heading("The strongest parts")
    kind = st.segmented_control(
        "Parts",
        list(_KINDS),
        format_func=_KINDS.get,
        label_visibility="collapsed",
        **state.bind_setting("contributions.kind", "w_contributions_kind", "heads", _KINDS),
    )
    figures.show(
        "The strongest parts",
        _bars(result, kind, state.is_dark()),
        key="w_contributions_ranked",
        config=export.plot_config("contributions"),
    )
