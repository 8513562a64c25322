"""Minimal pairs on the Counterfactuals page: which of two sentences a model finds likelier."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import MinimalPair, minimal_pairs, pseudo_likelihood
from bert_tf.plots.ranked_bars import ranked_bars
from ui.elements import tables
from ui.samples.examples import is_example
from ui.samples.minimal_pairs import PAIRS, partner
from ui.session import jobs, state
from ui.shell import snippets
from ui.widgets import export, figures, head_predictions, inputs
from ui.widgets.formatting import number


def draw(shared):
    """Draw one pair, chosen or typed, and with the switch on all example pairs."""
    if not head_predictions.can_analyse(shared, "minimal-pairs"):
        return
    good, bad = _fields()
    if not good.strip() or not bad.strip():
        st.info("Type both sentences, or choose a pair.", icon=":material/keyboard:")
        return
    view = state.view()
    call, call_of_all = Call.of(pseudo_likelihood), Call.of(minimal_pairs)
    every = state.setting("counterfactuals.all", False)
    snippets.give(shared, "pairs", call, good, bad, call_of_all if every else None)

    def score(bert, progress):
        return MinimalPair(*(call.run(bert, text, progress=progress) for text in (good, bad)))

    pair = jobs.result(
        "counterfactuals_pair",
        (shared.name, view.precision, good, bad, call),
        "Reading both sentences with one token hidden at a time",
        lambda progress: shared.run(score, progress=progress),
    )
    if pair is not None:
        _pair(pair, shared.name)
    st.caption(
        "The score of a sentence is its pseudo-log-likelihood: the sum of the log-probabilities of its tokens. One "
        "pair does not prove a rule: a rare word or a longer sentence changes the sums too.",
        help="Every token is hidden once, together with the rest of its word, and its log-probability is read. The "
        "masks set above have no effect here.",
    )
    if st.toggle(
        f"All {len(PAIRS)} examples", **state.bind_setting("counterfactuals.all", "w_counterfactuals_all", False)
    ):
        _all_pairs(shared, call_of_all)


def _fields():
    """Draw the examples and the two text fields; returns the two sentences."""
    labels, first = [pair.label for pair in PAIRS], _first_pair()
    good, bad = (state.setting(f"counterfactuals.{side}", getattr(first, side)) for side in ("good", "bad"))
    example = next((pair.label for pair in PAIRS if (pair.good, pair.bad) == (good, bad)), None)
    state.set_widget("w_counterfactuals_example", example)

    def pick():
        chosen_label = st.session_state["w_counterfactuals_example"]
        pair = PAIRS[labels.index(chosen_label or example or labels[0])]
        for side in ("good", "bad"):
            state.set_setting(f"counterfactuals.{side}", getattr(pair, side), getattr(first, side))

    st.pills("Pairs", labels, key="w_counterfactuals_example", on_change=pick, label_visibility="collapsed")
    most_characters = min(state.limits().max_characters, 500)
    for column, side, label in zip(st.columns(2), ("good", "bad"), ("Acceptable", "Unacceptable")):
        column.text_input(
            label,
            max_chars=most_characters,
            **state.bind_setting(f"counterfactuals.{side}", f"w_counterfactuals_{side}", getattr(first, side)),
        )
    return good[:most_characters], bad[:most_characters]


def _first_pair():
    """The pair with which the page opens: the visitor's text A and its ungrammatical partner, or else an example."""
    text = state.view().a
    return (None if is_example(text) else partner(text)) or PAIRS[0]


def _pair(pair, model):
    cut = [sentence for sentence in (pair.good, pair.bad) if sentence.truncated]
    if cut:
        st.warning(
            f"The model reads {len(cut[0].tokens)} tokens at once, and a sentence is longer: shorten it, as its end "
            "counts in no score.",
            icon=":material/content_cut:",
        )
        return
    verdict = "finds both equally likely"
    if pair.margin:
        verdict = "prefers the first" if pair.preferred else "prefers the second"
    inputs.heading(f"The model {verdict}")
    export.save("minimal-pair", pair, {"model": model}, (pair.good.text_a, pair.bad.text_a))
    st.markdown(
        f"The margin is **{abs(pair.margin):.2f} nats**: {number(pair.good.total)} for the first sentence,"
        f" {number(pair.bad.total)} for the second."
    )
    figures.show(
        "Scores of the tokens that differ",
        pair.figure(dark=state.is_dark()),
        key="w_counterfactuals_tokens",
        config=export.plot_config("minimal-pair"),
    )


def _all_pairs(shared, call):
    view = state.view()
    result = jobs.result(
        "counterfactuals_pairs",
        (shared.name, view.precision, call),
        "Reading all pairs",
        lambda progress: shared.run(
            call.run,
            [(pair.good, pair.bad) for pair in PAIRS],
            progress=progress,
            names=tuple(pair.label for pair in PAIRS),
        ),
    )
    if result is None:
        return
    num_right = sum(pair.preferred for pair in result)
    labels, margins = [pair.label for pair in PAIRS], [float(pair.margin) for pair in result]

    def figure(dark):
        return ranked_bars(labels, margins, "margin, nats", dark)

    inputs.heading(f"{num_right} of {len(result)} as a native speaker would choose")
    export.save("minimal-pairs", result, {"model": shared.name})
    st.caption("Twelve pairs are examples; they are too few to measure a model.")
    left_column, right_column = st.columns([3, 2], gap="large")
    with left_column:
        tables.show(
            {
                "what": labels,
                "good": [pair.good for pair in PAIRS],
                "bad": [pair.bad for pair in PAIRS],
                "margin": margins,
            },
            hide_index=True,
            width="stretch",
            key="w_counterfactuals_pairs",
            column_config={
                "what": "About",
                "good": "Acceptable",
                "bad": "Unacceptable",
                "margin": st.column_config.NumberColumn("Margin, nats", format="%+.2f"),
            },
        )
    with right_column:
        figures.show(
            "Preference in each pair",
            figure(state.is_dark()),
            key="w_counterfactuals_pairs_bars",
            config=export.plot_config("minimal-pairs"),
        )
