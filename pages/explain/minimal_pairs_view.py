"""The What-if page's minimal pairs: which of two sentences a model finds likelier."""

import streamlit as st

from bert_tf.explain import MinimalPair, minimal_pairs, pseudo_likelihood
from bert_tf.plots.interventions.ablation import ranked_bars
from ui.samples.minimal_pairs import PAIRS
from ui.session import jobs, state
from ui.shell import frame, snippets
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import title


def draw(shared):
    """One pair, chosen or typed; then, if asked for, all of the examples."""
    if "mlm" not in shared.bert.heads:
        st.warning(
            f"{title(shared.name)} has no head for masked words, and the scores are made with it. Choose"
            " another model in the sidebar.",
            icon=":material/block:",
        )
        return
    good, bad = _fields()
    if not good.strip() or not bad.strip():
        st.info("Type both sentences, or choose a pair.", icon=":material/keyboard:")
        return
    view = state.view()
    snippets.give(shared, "pairs", good, bad, state.setting("counterfactuals.all", False))
    key = (shared.name, view.precision, good, bad)
    pair = jobs.result(
        "counterfactuals_pair",
        key,
        "Reading both, a token hidden at a time",
        lambda progress: shared.run(_one_pair, good, bad, progress=progress),
    )
    if pair is not None:
        _one(pair, shared.name)
    st.caption(
        "Every token is hidden once and its log-probability read, the rest of its word hidden with it; their"
        " sum is the pseudo-log-likelihood. The masks say nothing here. One pair shows no rule: a rare word or a longer"
        " sentence moves the sums too."
    )
    if st.toggle(
        f"All {len(PAIRS)} examples", **state.bind_setting("counterfactuals.all", "w_counterfactuals_all", False)
    ):
        _all(shared)


def _one_pair(bert, good, bad, progress):
    return MinimalPair(*(pseudo_likelihood(bert, text, progress=progress) for text in (good, bad)))


def _fields():
    labels = [pair.label for pair in PAIRS]
    good, bad = (state.setting(f"counterfactuals.{side}", getattr(PAIRS[0], side)) for side in ("good", "bad"))
    shown = next((pair.label for pair in PAIRS if (pair.good, pair.bad) == (good, bad)), None)
    state.set_widget("w_counterfactuals_example", shown)

    def pick():
        chosen = st.session_state["w_counterfactuals_example"]
        pair = PAIRS[labels.index(chosen or shown or labels[0])]
        for side in ("good", "bad"):
            state.set_setting(f"counterfactuals.{side}", getattr(pair, side), getattr(PAIRS[0], side))

    st.pills("Pairs", labels, key="w_counterfactuals_example", on_change=pick, label_visibility="collapsed")
    most = min(state.limits().max_characters, 500)
    for column, side, label in zip(st.columns(2), ("good", "bad"), ("Good English", "Not so good")):
        column.text_input(
            label,
            max_chars=most,
            **state.bind_setting(f"counterfactuals.{side}", f"w_counterfactuals_{side}", getattr(PAIRS[0], side)),
        )
    return good[:most], bad[:most]


def _one(pair, model):
    verdict = "prefers the first" if pair.preferred else "prefers the second"
    with inputs.heading(f"The model {verdict}"):
        export.save("minimal-pair", pair, {"model": model})
    st.markdown(
        f"**{abs(pair.margin):.2f} nats** lie between them: {pair.good.total:.2f} for the first,"
        f" {pair.bad.total:.2f} for the second."
    )
    figures.show(
        "Scores of the tokens that differ",
        pair.figure(dark=frame.is_dark()),
        key="w_counterfactuals_tokens",
        config=export.plot_config("minimal-pair"),
    )


def _all(shared):
    view = state.view()
    found = jobs.result(
        "counterfactuals_pairs",
        (shared.name, view.precision),
        "Reading all pairs",
        lambda progress: shared.run(
            minimal_pairs,
            [(pair.good, pair.bad) for pair in PAIRS],
            progress=progress,
            names=tuple(pair.label for pair in PAIRS),
        ),
    )
    if found is None:
        return
    right = sum(pair.preferred for pair in found)
    labels, margins = [pair.label for pair in PAIRS], [float(pair.margin) for pair in found]

    def figure(dark):
        return ranked_bars(labels, margins, "margin, nats", dark)

    with inputs.heading(f"{right} of {len(found)} as a speaker would choose"):
        export.save("minimal-pairs", found, {"model": shared.name})
    st.caption("Twelve pairs show what can be asked; they measure nothing.")
    left, column = st.columns([3, 2], gap="large")
    with left:
        st.dataframe(
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
                "good": "Good",
                "bad": "Bad",
                "margin": st.column_config.NumberColumn("Margin, nats", format="%+.2f"),
            },
        )
    with column:
        figures.show(
            "Preference in each pair",
            figure(frame.is_dark()),
            key="w_counterfactuals_pairs_bars",
            config=export.plot_config("minimal-pairs"),
        )
