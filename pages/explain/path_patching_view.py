"""Path patching on the Patching page: what each part of a model passes directly to one other part or the answer."""

import math

import numpy as np
import streamlit as st

from bert_tf.explain import Receiver
from bert_tf.plots.ranked_bars import LONGEST_LIST, ranked_bars
from pages.explain import ablation_parts
from ui.session import state
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import escape_markdown, number

_UNIT = "of the difference"
_INTO = {
    "answer": "The answer",
    "queries": "A head's queries",
    "keys": "A head's keys",
    "values": "A head's values",
    "feed_forward": "A feed-forward block",
}


def receiver(shared):
    """Draw the widgets for what the paths lead to; returns a ``Receiver``, or None for the answer."""
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


def draw(result):
    """Draw the senders as a map and as a ranking, and the chosen sender."""
    into = _into(result.receiver)
    embeddings_share, full_share = (_percent(result.share(score)) for score in (result.embeddings, result.whole))
    if result.receiver is None:
        st.markdown(f"The path from the embeddings alone brings back {embeddings_share} of the difference.")
    else:
        st.markdown(
            f"With all that enters {into} taken from the first input, {full_share} of the difference comes back; the"
            f" path from the embeddings alone brings back {embeddings_share}."
        )
    if not result.has_path.any():
        st.info(
            f"Nothing but the embeddings comes before {into}. Choose a higher layer.",
            icon=":material/vertical_align_top:",
        )
    else:
        left_column, right_column = st.columns([6, 5], gap="large")
        with left_column:
            _grid(result)
        with right_column:
            _ranked(result)
    st.caption(
        "The model reads the other input, and one part, the sender, adds what it adds in the first: "
        f"“{escape_markdown(result.target.label)}” comes back where the map is blue and moves further away where it "
        "is orange. What a part does through other parts is not in its path.",
        help="All heads and feed-forward blocks except the sender are fixed at what they add in the other input. "
        "The change travels along the residual stream alone, whose sums and normalisations are computed again. "
        f"{_receiver_sentence(result.receiver)} The numbers are shares of the difference, and they need not add "
        "up.",
    )


def _into(receiver):
    """The name of what the paths lead to, for the middle of a sentence."""
    if receiver is None:
        return "the last hidden state"
    if receiver.part == "feed_forward":
        return f"the feed-forward block of layer {receiver.layer + 1}"
    return f"the {receiver.part} of layer {receiver.layer + 1}, head {receiver.head + 1}"


def _receiver_sentence(receiver):
    """A sentence about how the model goes on from the hidden state that the paths lead to."""
    if receiver is None:
        return "The answer is read from the last hidden state that results."
    return f"The input of {_into(receiver)} that results is put into a normal pass over the other input."


def _heads(result):
    """How many heads a layer has."""
    return result.scores.shape[1] - 1


def _shares(result):
    """The shares that the senders bring back, float64: a row for each layer with paths, a column for each head and one
    for the feed-forward block; NaN where there is no path."""
    return np.where(result.has_path, result.recovered, np.nan)[result.has_path.any(axis=1)]


def _percent(share):
    """A share of the difference as text, "–" for NaN."""
    return "–" if math.isnan(share) else f"{number(100 * share, 1)}%"


def _summary(result, cell):
    name = ablation_parts.name(*cell, _heads(result)).capitalize()
    if not result.has_path[cell]:
        return f"{name}: no path, as it does not come before"
    return f"{name}: brings back {_percent(result.recovered[cell])}"


def _grid(result):
    picked_cell = ablation_parts.draw_shares(
        "c_patching_paths",
        "Heads and feed-forward blocks by layers, coloured by what their paths bring back: press one to open it.",
        _shares(result),
        lambda cell: _summary(result, cell),
        "patching.sender",
        np.where(result.has_path, np.abs(result.scores - result.corrupted), -1),
        ("moves the answer further away", "brings the answer back"),
    )
    _open(result, picked_cell)


def _open(result, cell):
    """Draw the chosen sender, with buttons for the paths that lead to it."""
    layer, column = cell
    layers, heads = len(result.scores), _heads(result)
    st.markdown(_summary(result, cell))

    def lead_to(part):
        state.set_setting("patching.into", part, "answer")
        state.set_setting("patching.layer", layer + 1, layers)
        if column < heads:
            state.set_setting("patching.head", column + 1, 1)
        state.set_setting("patching.sender", "", "")

    parts = ("queries", "keys", "values") if column < heads else ("feed_forward",)
    with st.container(horizontal=True, gap="medium"):
        for part in parts:
            st.button(
                f"Paths into its {part}" if column < heads else "Paths into it",
                icon=":material/call_merge:",
                type="tertiary",
                key=f"w_patching_to_{part}",
                on_click=lead_to,
                args=(part,),
            )
        if column < heads:
            ablation_parts.look_button("w_patching_look", layer, column)


def _bars(result, dark=False):
    shares = {"the embeddings": result.share(result.embeddings)}
    shares |= {
        ablation_parts.name(*cell, _heads(result)): result.recovered[cell] for cell in zip(*np.nonzero(result.has_path))
    }
    ranked = sorted(shares.items(), key=lambda name_and_share: -abs(np.nan_to_num(name_and_share[1])))[:LONGEST_LIST]
    names, values = zip(*ranked)
    return ranked_bars(names, np.nan_to_num(values), f"brought back, {_UNIT}", dark).update_xaxes(tickformat=".0%")


def _ranked(result):
    inputs.heading("The strongest paths")
    figures.show(
        "The strongest paths",
        _bars(result, state.is_dark()),
        key="w_patching_ranked",
        config=export.plot_config("paths"),
    )
