"""Before and after: how fine-tuning moved the heads' attention on the visitor's text."""

import numpy as np
import streamlit as st

from bert_tf.explain.heads_changed import heads_changed
from bert_tf.plots.tasks import changed_heads
from ui import export, figures, frame, inputs, snippets, state, tasks
from ui.kept import kept
from ui.words import title

_SHOWN = 8


def page():
    st.title("What fine-tuning changed", anchor=False)
    pairs = tasks.pairs()
    if not pairs:
        st.info(
            "This view puts a fine-tuned model beside the one it came from, and no such pair is here. Train one "
            "under New task, or with `python -m bert_tf finetune`.",
            icon=":material/school:",
        )
        return
    first = next(iter(pairs))
    after = st.segmented_control(
        "Fine-tuned model",
        list(pairs),
        format_func=title,
        **state.bound_setting("finetuned.model", "w_finetuned_model", first, pairs),
    )
    after = after or first
    inputs.text_fields()
    if not inputs.texts_are_usable():
        return
    before = pairs[after]
    found, traces = _changes(before, after)
    snippets.give(before, after, traces)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _map(found, after)
    with right:
        _heads(found, traces, before, after)


def _changes(before, after):
    view = state.view()

    def make():
        pair = []
        for name in (before, after):
            shared = inputs.model(name)
            pair.append(shared.trace(view.a, view.b, (), attentions=True))
        return heads_changed(*pair), pair

    return kept("finetuned", (before, after, view.precision, view.a, view.b), make)


def _map(found, after):
    with inputs.heading("How far each head moved"):
        export.menu(
            "heads-moved",
            ("layer", "head", "bits"),
            lambda: [(layer + 1, head + 1, float(value)) for (layer, head), value in np.ndenumerate(found)],
            lambda: {"model": after, "bits": found.tolist()},
            lambda: changed_heads(found),
            lambda: {"bits": found},
        )
    figures.show(
        "How far each head moved",
        changed_heads(found, frame.is_dark()), config=export.plot_config("heads-moved"), key="w_finetuned_map"
    )
    st.caption(
        "Jensen-Shannon divergence between a head's attention before and after, the mean over the tokens that look: "
        "0 is the same, 1 is elsewhere altogether. Layers that were frozen cannot move, and a head may also change "
        "what it carries without changing where it looks."
    )


def _heads(found, traces, before, after):
    st.header("The heads that moved most", anchor=False)
    if found.max() < 1e-6:
        st.info("No head moved: every encoder layer was frozen.", icon=":material/ac_unit:")
        return
    order = np.argsort(-found, axis=None, kind="stable")[:_SHOWN]
    places = [tuple(int(part) for part in np.unravel_index(index, found.shape)) for index in order]
    names = {f"{layer + 1}.{head + 1}": (layer, head) for layer, head in places if found[layer, head] > 0}
    chosen = st.segmented_control(
        "Layer and head",
        list(names),
        **state.bound_setting("finetuned.head", "w_finetuned_head", next(iter(names)), names),
    )
    layer, head = names[chosen or next(iter(names))]
    snippets.give(before, after, traces, (layer, head))
    one, two = (trace.attentions[layer, head] for trace in traces)
    rows = np.argsort(-np.abs(one - two).sum(axis=1))[:_SHOWN]
    tokens = traces[0].tokens
    st.dataframe(
        {
            "token": [tokens[row] for row in rows],
            "before": [_looks(tokens, one[row]) for row in rows],
            "after": [_looks(tokens, two[row]) for row in rows],
        },
        hide_index=True,
        key="w_finetuned_table",
        column_config={"token": "Token", "before": "Looked most at", "after": "Looks most at now"},
    )
    with st.container(horizontal=True):
        for label, name in (("Open before", before), ("Open after", after)):
            st.button(
                label,
                icon=":material/arrow_forward:",
                type="tertiary",
                key=f"w_{label}",
                on_click=lambda name=name: state.change(
                    page="attention", model=name, layer=layer, head=head, masks=()
                ),
            )


def _looks(tokens, weights):
    place = int(weights.argmax())
    return f"{tokens[place]} ({weights[place]:.0%})"
