"""Patching's paths: what each part of a model tells one other, or the answer, directly."""

import math

import numpy as np
import streamlit as st

from bert_tf.explain import Receiver, patch_paths
from bert_tf.plots.diverging import diverging_ramp
from bert_tf.plots.interventions.ablation import LONGEST_LIST, by_kind, ranked_bars
from pages.explain import ablation_parts
from ui.elements.cells import cells
from ui.session import jobs, state
from ui.shell import frame
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import escape_markdown

_UNIT = "of the difference"
_INTO = {
    "answer": "The answer",
    "queries": "A head's queries",
    "keys": "A head's keys",
    "values": "A head's values",
    "feed_forward": "A feed-forward block",
}


def receiver(shared):
    """Widgets for what the paths lead to: a ``Receiver``, or None for the answer."""
    config = shared.bert.config
    layers, heads = range(1, config.num_hidden_layers + 1), range(1, config.num_attention_heads + 1)
    into = st.selectbox(
        "Paths into",
        list(_INTO),
        format_func=_INTO.get,
        width=220,
        **state.bind_setting("patching.into", "w_patching_into", "answer", _INTO),
    )
    if into == "answer":
        return None
    bound = state.bind_setting("patching.layer", "w_patching_layer", layers[-1], layers)
    layer = st.selectbox("of layer", layers, width=110, **bound) - 1
    if into == "feed_forward":
        return Receiver(into, layer)
    bound = state.bind_setting("patching.head", "w_patching_head", 1, heads)
    return Receiver(into, layer, st.selectbox("of head", heads, width=110, **bound) - 1)


def patched(shared, key, trace, other, target, position, receiver):
    """The ``PathPatchingResult``, or None while it is not there; key: what it hangs on beside the receiver."""

    def work(progress):
        return shared.run(patch_paths, trace, other, target, receiver, position, progress=progress)

    label = "Paths, put over one at a time"
    return jobs.result("patching path", (*key, receiver), label, work, patience=jobs.SHORT)


def save(trace, found):
    """The download menu."""
    export.save("paths", found, {"model": trace.model})


def draw(found):
    """The senders as a map and ranked, and the one that is open."""
    into = _into(found.receiver)
    embedded, whole = (_percent(found.share(score)) for score in (found.embeddings, found.whole))
    if found.receiver is None:
        st.markdown(f"By the path from the embeddings alone {embedded} of the difference comes back.")
    else:
        st.markdown(
            f"With all that enters {into} taken from the first input, {whole} of the difference comes back; by the path"
            f" from the embeddings alone {embedded}."
        )
    if not found.has_path.any():
        st.info(
            f"Nothing but the embeddings comes before {into}. Choose a higher layer.",
            icon=":material/vertical_align_top:",
        )
    else:
        left, right = st.columns([6, 5], gap="large")
        with left:
            _grid(found)
        with right:
            _ranked(found)
    st.caption(
        "The model reads the other input, and all heads and feed-forward blocks are held at what they add there, but"
        " for one, which adds what it adds in the first input. This goes along the residual stream alone, whose sums"
        f" and normalisations are worked out anew. {_reads(found.receiver)}"
        f" Blue: “{escape_markdown(found.target.label)}” comes back; orange: it goes further away. Shares of the"
        " difference; they need not add up, and what a part does through others is in no path of its own."
    )


def _into(receiver):
    """What the paths lead to, within a sentence."""
    if receiver is None:
        return "the last hidden state"
    if receiver.part == "feed_forward":
        return f"the feed-forward block of layer {receiver.layer + 1}"
    return f"the {receiver.part} of layer {receiver.layer + 1}, head {receiver.head + 1}"


def _reads(receiver):
    """What becomes of the hidden state that the paths lead to."""
    if receiver is None:
        return "The answer is read from the last hidden state that this makes."
    return f"What then enters {_into(receiver)} is put into a plain run on the other input."


def _heads(found):
    return found.scores.shape[1] - 1


def _shares(found):
    """float64, a row for each layer that paths lead from and a column for each head and the block, NaN for no path."""
    return np.where(found.has_path, found.recovered, np.nan)[found.has_path.any(axis=1)]


def _percent(share):
    """A share of the difference, "–" where there is none."""
    return "–" if math.isnan(share) else f"{round(100 * share, 1) + 0.0:.1f}%"


def _summary(found, place):
    name = ablation_parts.name(*place, _heads(found)).capitalize()
    if not found.has_path[place]:
        return f"{name}: no path, it does not come before"
    return f"{name}: brings back {_percent(found.recovered[place])}"


def _grid(found):
    heads, shares, picked = _heads(found), _shares(found), _picked(found)
    every = list(np.ndindex(shares.shape))

    def pressed(layer, column):
        state.set_setting("patching.sender", ablation_parts.cells_as_text([(layer, column)], heads), "")

    shades = (0.5 + 0.5 * by_kind(shares, heads)).ravel().tolist()
    cells(
        "c_patching_paths",
        "Heads and feed-forward blocks by layers, on the colour of what their paths bring back: press one to open it."
        " Arrow keys move, Enter chooses.",
        "layer",
        [str(layer + 1) for layer in range(len(shares))],
        [*(str(head + 1) for head in range(heads)), "FF"],
        [_summary(found, place) for place in every],
        diverging_ramp(frame.is_dark()),
        pressed,
        shades=[None if math.isnan(shade) else round(shade, 3) for shade in shades],
        picked=every.index(picked),
        breaks=[heads],
        hint="Press a head or a feed-forward block (FF). Heads and blocks are coloured each by their own strongest.",
        legend=("takes it further away", "brings the answer back"),
    )
    _open(found, picked)


def _picked(found):
    """The open place of the grid: the link's, or the strongest path's."""
    layers, heads = len(_shares(found)), _heads(found)
    named = ablation_parts.cells_from_text(state.setting("patching.sender", ""), layers, heads)
    effects = np.where(found.has_path, np.abs(found.scores - found.corrupted), -1)
    strongest = np.unravel_index(effects.argmax(), effects.shape)
    return min((place for place in named if place[1] <= heads), default=tuple(map(int, strongest)))


def _open(found, place):
    """What was pressed, with what leads to it in turn."""
    layer, column = place
    layers, heads = len(found.scores), _heads(found)
    st.markdown(_summary(found, place))

    def lead_to(part):
        state.set_setting("patching.into", part, "answer")
        state.set_setting("patching.layer", layer + 1, layers)
        if column < heads:
            state.set_setting("patching.head", column + 1, 1)
        state.set_setting("patching.sender", "", "")

    offered = ("queries", "keys", "values") if column < heads else ("feed_forward",)
    with st.container(horizontal=True, gap="medium"):
        for part in offered:
            st.button(
                f"Paths into its {part}" if column < heads else "Paths into it",
                icon=":material/call_merge:",
                type="tertiary",
                key=f"w_patching_to_{part}",
                on_click=lead_to,
                args=(part,),
            )
        if column < heads:
            st.button(
                "Where it looks",
                icon=":material/arrow_forward:",
                type="tertiary",
                key="w_patching_look",
                on_click=lambda: state.change_view(page="all_heads", layer=layer, head=column),
            )


def _bars(found, dark=False):
    shares = {"the embeddings": found.share(found.embeddings)}
    shares |= {
        ablation_parts.name(*place, _heads(found)): found.recovered[place] for place in zip(*np.nonzero(found.has_path))
    }
    ranked = sorted(shares.items(), key=lambda one: -abs(np.nan_to_num(one[1])))[:LONGEST_LIST]
    names, values = zip(*ranked)
    return ranked_bars(names, np.nan_to_num(values), f"brought back, {_UNIT}", dark).update_xaxes(tickformat=".0%")


def _ranked(found):
    inputs.heading("The strongest paths")
    figures.show(
        "The strongest paths",
        _bars(found, frame.is_dark()),
        key="w_patching_ranked",
        config=export.plot_config("paths"),
    )
