"""Factors: which units inside the feed-forward blocks fire together, and at which of the visitor's words."""

import numpy as np
import streamlit as st

from bert_tf.explain import FactorUnits, factorise, feed_forward_activations
from bert_tf.explain.representations.factors import MAX_FACTORS, MAX_ITERATIONS, MIN_FACTORS
from bert_tf.plots.models.architecture import MAX_TOKENS as TOKENS_THERE
from bert_tf.plots.models.architecture import MOST_UNITS as UNITS_THERE
from bert_tf.plots.representations.factors import MAX_TOKENS, factor_map
from bert_tf.plots.theme import ramp
from pages.representations.snippets.factors import snippet
from ui.elements.cells import marks
from ui.session import jobs, state
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, highlights, inputs, targets
from ui.widgets.formatting import count, escape_markdown, percent

PAGE = Page(
    name="factors",
    group="Representations",
    order=4,
    title="Factors",
    question="What fires together",
    summary=(
        "the activations inside the feed-forward blocks, of one layer, some or all together, taken apart into "
        "groups of units that fire together: where each is there on the visitor's own words, how much of the "
        "whole it is, and its units, each opens in Architecture"
    ),
    presses={"": Press("choice: Factor: 1|2")},
    analyses=("neuron-factors",),
    settings=("count", "layers", "at", "start"),
    settings_help="how many factors; first and last layer, `3-7`; the open factor; the first token of the map",
    opens_rows=True,
    snippet=snippet,
)


_FACTORS, _UNITS = 6, 10  # at first; those that are listed
_LAYERS = "factors.layers"


def page():
    opened = inputs.page_inputs()
    if opened is None:
        return
    shared, encoding = opened
    trace = targets.view_trace(shared, encoding, hidden_states=True)
    if trace is None:
        return
    asked, layers = _settings(trace, shared.config.num_hidden_layers)
    positions = _positions(trace)
    found = _found(shared, trace, asked, layers, positions)
    if found is None:
        return
    weights = _spread(found, trace, positions)
    first = _first(trace, weights)
    at = state.setting("factors.at", first + 1) - 1
    factor = at if 0 <= at < len(weights) else first
    snippets.give(shared, trace, asked, layers, positions, factor, _UNITS)
    _words(trace, found, weights, factor, first)
    _map(trace, weights)
    _units(trace, found, weights, factor)


def _settings(trace, layers):
    """(factors, (first, last) layer from 0)."""
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
                    "factors.count", "w_factors_count", min(_FACTORS, most), range(MIN_FACTORS, most + 1)
                ),
            )
        span = (1, 1) if layers == 1 else _span(layers)
        st.toggle(
            "Special tokens",
            help="They ([CLS] and [SEP] in BERT) often take a factor of their own: leave them out to see more.",
            **state.bind_field("special", "w_factors_special"),
        )
    return asked, (span[0] - 1, span[1] - 1)


def _span(layers):
    """The first and the last layer, from 1; a link has them as "3-7"."""
    first, _, last = state.setting(_LAYERS, "").partition("-")
    wanted = tuple(int(one) if one.isascii() and one.isdecimal() else 0 for one in (first, last or first))
    if not 1 <= wanted[0] <= wanted[1] <= layers:
        wanted = (1, layers)
    state.set_widget("w_factors_layers", wanted)

    def chosen():
        span = st.session_state["w_factors_layers"]
        state.set_setting(_LAYERS, "" if span == (1, layers) else "{}-{}".format(*span), "")

    return st.slider("Layers", 1, layers, key="w_factors_layers", on_change=chosen, width=260)


def _positions(trace):
    """Positions of the tokens that are looked at."""
    special = state.view().special
    return tuple(place for place, source in enumerate(trace.sources) if special or source is not None)


def _found(shared, trace, asked, layers, positions):
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks, asked, layers, positions)

    def work(progress):
        steps = layers[1] - layers[0] + 1
        activations = shared.run(
            feed_forward_activations,
            trace,
            *layers,
            positions,
            progress=lambda done, _: progress(done, steps + MAX_ITERATIONS),
        )
        found = factorise(activations, asked, lambda done, _: progress(steps + done, steps + MAX_ITERATIONS))
        return found.named(trace.tokens, positions, layers[0], _UNITS)

    return jobs.result("factors", key, "Taking the activations apart", work)


def _spread(found, trace, positions):
    """The factors' weights at all tokens, float32 [K, T]; 0 at those that were left out."""
    weights = np.zeros((len(found.weights), trace.length), np.float32)
    weights[:, list(positions)] = found.weights
    return weights


def _first(trace, weights):
    """The factor that is open at first: the longest that is strongest at one of the texts' own tokens."""
    strongest = enumerate(weights.argmax(axis=1))
    return next((factor for factor, place in strongest if trace.sources[place] is not None), 0)


def _words(trace, found, weights, factor, first):
    """The texts on the colours of the open factor; first: the one that is open where the link names none."""
    names = list(range(1, len(weights) + 1))
    with inputs.heading("One factor on the words"):
        export.save("factors", found, {"model": trace.model})
    st.segmented_control(
        "Factor",
        names,
        required=True,
        **state.bind_setting("factors.at", "w_factors_at", first + 1, names),
    )
    own = weights[factor]
    strongest = float(own.max()) or 1.0
    marks(
        "c_factors",
        highlights.token_highlights(trace, own / strongest, lambda place: f"{own[place]:.2f}"),
        ramp(frame.is_dark()),
        ("not there", "strongest"),
        "Point at a token, or tap it, for how strongly the factor is there.",
    )
    said = ", ".join(f"“{escape_markdown(token)}” {weight:.1f}" for token, weight in _strongest(trace, own))
    st.caption(
        f"Factor {factor + 1} is strongest at {said}. It has {percent(found.shares[factor])} of the activations' "
        f"squared length; all {len(weights)} together explain {percent(found.explained)} of it. A factor is a group "
        "of units that fire together. Nobody has named it: what its words have in common is for you to see."
    )


def _strongest(trace, own, most=5):
    """The tokens that a factor is strongest at with the weight there, each token once."""
    found = {}
    for place in np.argsort(-own, kind="stable").tolist():
        if own[place] > 0 and len(found) < most:
            found.setdefault(trace.tokens[place], float(own[place]))
    return found.items()


def _map(trace, weights):
    st.header("All factors", anchor=False)
    start = 0
    if trace.length > MAX_TOKENS:
        most = trace.length - MAX_TOKENS + 1
        bound = state.bind_setting("factors.start", "w_factors_start", 1, range(1, most + 1))
        start = st.slider(f"{MAX_TOKENS} tokens from", 1, most, **bound) - 1
    figures.show(
        "All factors at every token",
        factor_map(weights, trace.tokens, frame.is_dark(), start, MAX_TOKENS),
        key="w_factors_map",
        config=export.plot_config("factors"),
    )
    st.caption(
        "Activations inside the feed-forward blocks, after their non-linearity; what it leaves below 0 (GELU a little, "
        "−0.17 at the least) counts as 0. They are taken apart by non-negative matrix factorisation, the longest "
        "factor first, as Ecco does (Alammar 2021; Olah et al. 2018). Other numbers of factors give other factors."
    )


def _units(trace, found, weights, factor):
    units = found.units[factor]
    with inputs.heading(f"Units that fire most in factor {factor + 1}"):
        export.save(f"factor-{factor + 1}-units", FactorUnits(factor, units), {"model": trace.model})
    event = st.dataframe(
        {
            "layer": [one.layer + 1 for one in units],
            "unit": [one.unit + 1 for one in units],
            "weight": [one.weight for one in units],
        },
        hide_index=True,
        width="stretch",
        key="w_factors_units",
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "layer": st.column_config.NumberColumn("Layer", width="small"),
            "unit": st.column_config.NumberColumn("Unit", format="localized", width="small"),
            "weight": st.column_config.ProgressColumn("Weight", format="%.3f", min_value=0, max_value=units[0].weight),
        },
    )
    firing = int(np.count_nonzero(found.unit_weights[factor]))
    st.caption(
        f"{count(firing, 'unit')} of {found.unit_weights[factor].size:,} have a weight in it; the squares of all "
        "weights add up to 1. Press the box before a row to see that unit's values in Architecture."
    )
    chosen = event.selection.rows
    if chosen and chosen[0] < len(units):
        unit = units[chosen[0]]
        st.button(
            f"{_named(unit).capitalize()} in Architecture",
            icon=":material/arrow_forward:",
            key="w_factors_open",
            on_click=_to_architecture,
            args=(unit, found.unit_weights.shape[2], trace.length, int(weights[factor].argmax())),
        )


def _to_architecture(unit, units, tokens, strongest):
    """Open the values of a unit, the factor's strongest token among those in sight."""
    state.set_setting("architecture.open", "feed_forward", "attention")
    state.set_setting("architecture.values", "feed_forward_wide", "")
    state.set_setting("architecture.layer", unit.layer + 1, 1)
    state.set_setting("architecture.unit", 1 + max(0, min(unit.unit, units - UNITS_THERE)), 1)
    first = min(strongest - TOKENS_THERE // 2, tokens - TOKENS_THERE)
    state.set_setting("architecture.token", 1 + max(0, first), 1)
    state.change_view(page="architecture")


def _named(unit):
    return f"layer {unit.layer + 1}, unit {unit.unit + 1:,}"
