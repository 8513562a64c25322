"""Factors: units inside the feed-forward blocks that are active together, and the words where they are active."""

import numpy as np
import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import FactorUnits, neuron_factors
from bert_tf.explain.representations.factors import ANALYSIS, MAX_FACTORS, MIN_FACTORS
from bert_tf.plots.models.architecture import MAX_TOKENS as TOKENS_THERE
from bert_tf.plots.models.architecture import MOST_UNITS as UNITS_THERE
from bert_tf.plots.numbers import percent
from bert_tf.plots.representations.factors import MAX_TOKENS, factor_map
from bert_tf.plots.theme import ramp
from pages.representations.snippets.factors import snippet
from ui.elements import tables
from ui.elements.cells import marks
from ui.session import calls, state
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, highlights, inputs, targets
from ui.widgets.formatting import count, escape_markdown

PAGE = Page(
    name="factors",
    group="Representations",
    order=4,
    title="Neuron factors (NMF)",
    question="Which units are active together",
    terms="NMF feed-forward neurons activations units matrix factorisation Ecco",
    summary=(
        "the activations inside the feed-forward blocks, of one layer, several or all, factorised into "
        "groups of units that are active together: the weight of each group at the visitor's words, its share of "
        "the activations, and its units, each opens in Architecture"
    ),
    presses={"": Press("choice: Factor: 1|2")},
    analyses=("neuron-factors",),
    settings=("count", "layers", "at", "start"),
    settings_help="how many factors; first and last layer, `3-7`; the open factor; the first token of the map",
    opens_rows=True,
    snippet=snippet,
)


_UNITS = 10  # units that are listed
_LAYERS = "factors.layers"


def page():
    page_inputs = inputs.page_inputs()
    if page_inputs is None:
        return
    shared, encoding = page_inputs
    trace = targets.view_trace(shared, encoding, hidden_states=True)
    if trace is None:
        return
    number, layers = _settings(trace, shared.config.num_hidden_layers)
    call = Call.of(neuron_factors, factors=number, layers=layers, special=state.view().special, top_k=_UNITS)
    factors = calls.job_result(shared, call, trace, label="Factorising the activations", name="factors")
    if factors is None:
        return
    weights = _at_all_tokens(factors, trace)
    first = _first(trace, weights)
    at = state.setting("factors.at", first + 1) - 1
    factor = at if 0 <= at < len(weights) else first
    snippets.give(shared, trace, call, factor)
    _words(trace, factors, weights, factor, first)
    _map(trace, weights)
    _units(trace, factors, weights, factor)


def _settings(trace, layers):
    """The widgets; returns (number of factors, (first, last) layer from 0 or None for all)."""
    special = state.view().special
    most = min(MAX_FACTORS, trace.length if special else sum(source is not None for source in trace.sources))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        asked = MIN_FACTORS
        if most > MIN_FACTORS:
            asked = st.slider(
                "Factors",
                MIN_FACTORS,
                most,
                width=220,
                **state.bind_setting(
                    "factors.count",
                    "w_factors_count",
                    min(ANALYSIS.option("factors").default, most),
                    range(MIN_FACTORS, most + 1),
                ),
            )
        span = (1, 1) if layers == 1 else _span(layers)
        st.toggle(
            "Special tokens",
            help="They ([CLS] and [SEP] in BERT) often have a factor of their own: leave them out to see others.",
            **state.bind_field("special", "w_factors_special"),
        )
    return asked, None if span == (1, layers) else (span[0] - 1, span[1] - 1)


def _span(layers):
    """The slider of the first and the last layer, from 1; the link has them as "3-7"."""
    first, _, last = state.setting(_LAYERS, "").partition("-")
    wanted = tuple(int(text) if text.isascii() and text.isdecimal() else 0 for text in (first, last or first))
    if not 1 <= wanted[0] <= wanted[1] <= layers:
        wanted = (1, layers)
    state.set_widget("w_factors_layers", wanted, (layers,))

    def chosen():
        span = st.session_state["w_factors_layers"]
        state.set_setting(_LAYERS, "" if span == (1, layers) else "{}-{}".format(*span), "")

    return st.slider("Layers", 1, layers, key="w_factors_layers", on_change=chosen, width=260)


def _at_all_tokens(factors, trace):
    """The factors' weights at all tokens, float32 [K, T]; 0 at tokens that were left out."""
    weights = np.zeros((len(factors.weights), trace.length), np.float32)
    weights[:, list(factors.positions)] = factors.weights
    return weights


def _first(trace, weights):
    """The factor that is open at first: the longest one with its maximum at a token of the texts."""
    strongest = enumerate(weights.argmax(axis=1))
    return next((factor for factor, place in strongest if trace.sources[place] is not None), 0)


def _words(trace, factors, weights, factor, first):
    """Draw the texts, coloured by the open factor; first: the factor that is open by default."""
    names = list(range(1, len(weights) + 1))
    inputs.heading("One factor on the words")
    export.save("factors", factors, trace=trace)
    st.segmented_control(
        "Factor",
        names,
        required=True,
        **state.bind_setting("factors.at", "w_factors_at", first + 1, names),
    )
    factor_weights = weights[factor]
    strongest = float(factor_weights.max()) or 1.0
    marks(
        "c_factors",
        highlights.token_highlights(trace, factor_weights / strongest, lambda place: f"{factor_weights[place]:.2f}"),
        ramp(state.is_dark()),
        ("0", "strongest"),
        "Point at a token, or tap it, for the weight of the factor there.",
    )
    tokens = ", ".join(
        f"“{escape_markdown(token)}” {weight:.1f}" for token, weight in _strongest(trace, factor_weights)
    )
    st.caption(
        f"Factor {factor + 1} is strongest at {tokens}. It has {percent(factors.shares[factor])} of the activations' "
        f"squared length, and all {len(weights)} together explain {percent(factors.explained)} of it.",
        help="A factor is a group of units that are active together. It has no name: compare its words to see what "
        "they have in common.",
    )


def _strongest(trace, factor_weights, most=5):
    """Pairs (token, weight) of the greatest weights of a factor, each token once; 0.0 only if there is no other."""
    strongest = {}
    for place in np.argsort(-factor_weights, kind="stable").tolist():
        if len(strongest) < most and (factor_weights[place] >= 0.05 or not strongest):
            strongest.setdefault(trace.tokens[place], float(factor_weights[place]))
    return strongest.items()


def _map(trace, weights):
    st.header("All factors", anchor=False)
    start = inputs.token_window(trace.length, MAX_TOKENS, "factors.start", "w_factors_start").start
    figures.show(
        "All factors at every token",
        factor_map(weights, trace.tokens, state.is_dark(), start, MAX_TOKENS),
        key="w_factors_map",
        config=export.plot_config("factors"),
    )
    st.caption(
        "The activations inside the feed-forward blocks are factorised by non-negative matrix factorisation, as in "
        "Ecco (Alammar 2021; Olah et al. 2018). Another number of factors gives other factors.",
        help="The activations are those after the non-linearity. Values below 0 (GELU's minimum is −0.17) count as "
        "0. The longest factor comes first.",
    )


def _units(trace, factors, weights, factor):
    units = factors.units[factor]
    inputs.heading(f"The most active units of factor {factor + 1}")
    export.save(f"factor-{factor + 1}-units", FactorUnits(factor, units), trace=trace)
    event = tables.show(
        {
            "layer": [unit.layer + 1 for unit in units],
            "unit": [unit.unit + 1 for unit in units],
            "weight": [unit.weight for unit in units],
        },
        hide_index=True,
        width="stretch",
        key=tables.key_of("w_factors_units", ((unit.layer, unit.unit) for unit in units)),
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "layer": st.column_config.NumberColumn("Layer", width="small"),
            "unit": st.column_config.NumberColumn("Unit", format="plain", width="small"),
            "weight": st.column_config.ProgressColumn("Weight", format="%.3f", min_value=0, max_value=units[0].weight),
        },
    )
    active = int(np.count_nonzero(factors.unit_weights[factor]))
    st.caption(
        f"{count(active, 'unit')} of {factors.unit_weights[factor].size:,} have a weight above 0 in it; the squares "
        "of all weights add up to 1. Press the box before a row to see that unit's values in Architecture."
    )
    chosen = event.selection.rows
    if chosen and chosen[0] < len(units):
        unit = units[chosen[0]]
        st.button(
            f"{_named(unit).capitalize()} in Architecture",
            icon=":material/arrow_forward:",
            key="w_factors_open",
            on_click=_to_architecture,
            args=(unit, factors.unit_weights.shape[2], trace.length, int(weights[factor].argmax())),
        )


def _to_architecture(unit, units, tokens, strongest):
    """Open the values of a unit in Architecture, with the factor's strongest token in the visible part."""
    state.set_setting("architecture.open", "feed_forward", "attention")
    state.set_setting("architecture.values", "feed_forward_wide", "")
    state.set_setting("architecture.layer", unit.layer + 1, 1)
    state.set_setting("architecture.unit", 1 + max(0, min(unit.unit, units - UNITS_THERE)), 1)
    first = min(strongest - TOKENS_THERE // 2, tokens - TOKENS_THERE)
    state.set_setting("architecture.token", 1 + max(0, first), 1)
    state.change_view(page="architecture")


def _named(unit):
    return f"layer {unit.layer + 1}, unit {unit.unit + 1}"
