"""Contributions: what the input, each head and each feed-forward block put into the answer directly."""

import math

import numpy as np
import streamlit as st

from bert_tf.explain import contributions
from bert_tf.explain.interventions.contributions import is_only_class
from bert_tf.plots.diverging import diverging_ramp
from bert_tf.plots.interventions.ablation import LONGEST_LIST, by_kind, ranked_bars
from pages.explain import ablation_parts
from pages.explain.snippets.contributions import snippet
from ui.elements.cells import cells
from ui.session import jobs, state
from ui.shell import frame, snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import bold, escape_markdown, percent

PAGE = Page(
    name="contributions",
    group="Explain",
    order=3,
    title="Contributions",
    question="What each part adds to the answer",
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
)


_PATIENCE = 1.0  # seconds: a short text takes embedded Base half of one
_KINDS = {"heads": "Heads", "blocks": "Blocks, input and biases"}


def page():
    opened = targets.page_inputs()
    if opened is None:
        return
    shared, _, trace = opened
    target = targets.target_picker("contributions", shared, trace)
    if target is None:
        return
    if is_only_class(shared.bert, target):
        st.info(
            f"“{escape_markdown(target.label)}” is the only class, and always certain:"
            " nothing speaks for or against it.",
            icon=":material/block:",
        )
        return
    snippets.give(shared, trace, target)
    found = _shared_out(shared, trace, target)
    if found is None:
        return
    left, right = st.columns([6, 5], gap="large")
    with left:
        _grid(trace, found)
    with right:
        _ranked(found)
    st.caption(
        f"The last hidden state that “{escape_markdown(target.label)}” is read from is exactly the sum of what all"
        " parts put there, with the spread that each normalisation divides by held as it is in this pass. A share is"
        f" a part times the slope of the {_scored(target)} at that hidden state: to first order, as the step from there"
        " to the answer is no straight line. It is the direct path alone. What later layers make of a part is not in"
        " its share; Ablation and Patching show a part's whole effect."
    )


def _shared_out(shared, trace, target):
    """The ``Contributions``, or None while they are not there."""
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks, target)

    def work(progress):
        return shared.run(contributions, trace, target, progress=progress)

    return jobs.result("contributions", key, "Taking the last hidden state apart", work, patience=_PATIENCE)


def _scored(target):
    return "value" if target.is_regression else "log-odds"


def _unit(target):
    return "of the value" if target.is_regression else "nats of log-odds"


def _grid(trace, found):
    layers, heads = found.heads.shape
    shares = _shares(found)
    with inputs.heading("Layer by part"):
        export.save("contributions", found, {"model": trace.model})
    st.markdown(_sums(found))
    picked = _picked(found)
    every = [(layer, column) for layer in range(layers) for column in range(heads + 1)]

    def pressed(layer, column):
        state.set_setting("contributions.part", ablation_parts.cells_as_text([(layer, column)], heads), "")

    cells(
        "c_contributions",
        "Heads and feed-forward blocks by layers, on the colour of their shares: press one for its pages. Arrow keys"
        " move, Enter chooses.",
        "layer",
        [str(layer + 1) for layer in range(layers)],
        [*(str(head + 1) for head in range(heads)), "FF"],
        [_summary(found, place) for place in every],
        diverging_ramp(frame.is_dark()),
        pressed,
        shades=[round(0.5 + 0.5 * float(value), 3) for value in by_kind(shares, heads).ravel()],
        picked=every.index(picked),
        breaks=[heads],
        hint="Press a head or a feed-forward block (FF). Heads and blocks are coloured each by their own strongest.",
        legend=("speaks against the answer", "speaks for it"),
    )
    _open(found, picked)


def _shares(found):
    """float64 [L, N + 1]: the heads, then the feed-forward block."""
    return np.column_stack([found.heads, found.feed_forward])


def _sums(found):
    target, label = found.target, bold(found.target.label)
    if target.is_regression:
        begins = f"The value is {found.score:.3f}."
    else:
        share = 0.5 * (1 + math.tanh(0.5 * found.score))
        begins = f"{label} has {percent(share)}, log-odds of {found.score:+.2f}."
    groups = {
        "heads": found.heads.sum(),
        "feed-forward blocks": found.feed_forward.sum(),
        "the input": found.input,
        "biases": found.biases,
    }
    # Zero added, so that what is rounded to nothing has no minus.
    told = ", ".join(f"{name} {round(value, 2) + 0.0:+.2f}" for name, value in groups.items())
    rest = f"the step from the last hidden state to the answer makes the rest, {found.score - found.total:+.2f}"
    return f"{begins} The parts make {found.total:+.2f} ({told}); {rest}."


def _picked(found):
    """The open place of the grid: the link's, or the strongest head."""
    layers, heads = found.heads.shape
    named = ablation_parts.cells_from_text(state.setting("contributions.part", ""), layers, heads)
    strongest = np.unravel_index(np.abs(found.heads).argmax(), found.heads.shape)
    return min((place for place in named if place[1] <= heads), default=tuple(map(int, strongest)))


def _summary(found, place):
    heads = found.heads.shape[1]
    return f"{ablation_parts.name(*place, heads).capitalize()}: {_shares(found)[place]:+.3f} {_unit(found.target)}"


def _open(found, place):
    """What was pressed, with the pages that show more of it."""
    layer, column = place
    heads = found.heads.shape[1]
    st.markdown(_summary(found, place))
    with st.container(horizontal=True, gap="medium"):
        if column < heads:
            st.button(
                "Where it looks",
                icon=":material/arrow_forward:",
                type="tertiary",
                key="w_contributions_look",
                on_click=lambda: state.change_view(page="all_heads", layer=layer, head=column),
            )

        def switch_off():
            off = ablation_parts.cells_as_text([place], heads)
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


def _named(found, kind):
    """Pairs of a part's name and its share, the strongest first."""
    layers, heads = found.heads.shape
    if kind == "heads":
        shares = {
            ablation_parts.name(layer, head, heads): found.heads[layer, head]
            for layer, head in np.ndindex(layers, heads)
        }
    else:
        shares = {f"layer {layer}, feed-forward": share for layer, share in enumerate(found.feed_forward, start=1)}
        shares |= {"the input": found.input, "biases": found.biases}
    return sorted(shares.items(), key=lambda one: -abs(one[1]))


def _bars(found, kind, dark=False):
    names, values = zip(*_named(found, kind)[:LONGEST_LIST])
    return ranked_bars(names, values, f"share, {_unit(found.target)}", dark)


def _ranked(found):
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
        _bars(found, kind, frame.is_dark()),
        key="w_contributions_ranked",
        config=export.plot_config("contributions"),
    )
