"""Compare: two models on one input."""

import streamlit as st

from bert_tf import plots
from bert_tf.explain import aligned_layers, compare, fill_mask
from ui import comparison, components, downloads, export, frame, inputs, models, state
from ui.cards import cards
from ui.spots import positions
from ui.traces import attention_trace
from ui.words import title


def page():
    st.title("Two models, one text", anchor=False)
    installed = models.installed()
    if len(installed) < 2:
        st.info(
            "A comparison needs two models, and only one is installed here.", icon=":material/compare_arrows:"
        )
        _offer(installed)
        return
    _pickers(installed)
    with st.expander("Texts and masks", expanded=not state.view().a.strip(), icon=":material/edit_note:"):
        inputs.examples()
        inputs.text_fields()
    if not inputs.texts_are_usable():
        return
    pair = [inputs.model(name) for name in (state.view().model, state.view().other)]
    encoding = inputs.read(pair[0])
    if encoding is None:
        return
    inputs.token_strip(pair[0], encoding, "c_compare_chips")
    traces = [_trace(shared) for shared in pair]
    _results(pair, traces)
    _agreement(pair, traces)
    _facts(pair, traces, {info.name: info for info in installed})
    _attention(pair, traces)
    _offer(installed)


def _pickers(installed):
    names = [info.name for info in installed]
    model, other = comparison.preset(installed, state.view())
    state.settle(model=model, other=other)
    left, right = st.columns(2)
    left.selectbox("One model", names, format_func=title, **state.bound("model", "w_compare_model"))
    right.selectbox("The other", names, format_func=title, **state.bound("other", "w_compare_other"))
    if model == other:
        st.caption("Both are the same model: everything below agrees.")


def _trace(shared):
    view = state.view()
    masked = positions(shared.encode(view.a, view.b), view.masks)
    if len(masked) > state.limits().max_masks:
        raise ValueError(
            f"There are {len(masked)} masks; at most {state.limits().max_masks} are predicted at once. "
            "Unmask some."
        )
    with st.spinner("Reading …", show_time=True):
        return attention_trace(shared, masked)


def _results(pair, traces):
    st.subheader("Predictions and next sentence", anchor=False)
    for column, shared, trace, side in zip(st.columns(2, gap="large"), pair, traces, "ab"):
        with column:
            st.markdown(f"**{title(shared.name)}**")
            if trace.masks and trace.logits is not None:
                answers = fill_mask(trace, shared.tokenizer, state.view().top_k)
                components.bars(f"c_compare_bars_{side}", cards(answers))
            elif trace.masks:
                st.caption("No head for masked words.")
            else:
                st.caption("Nothing is hidden: press a token above.")
            if trace.nsp is not None:
                components.gauge(f"c_compare_gauge_{side}", float(trace.nsp.is_next))
            elif trace.text_b is not None:
                st.caption("No next-sentence head.")


def _agreement(pair, traces):
    view = state.view()
    found = compare(
        *traces,
        pair[0].tokenizer,
        pair[1].tokenizer,
        *(shared.config.num_hidden_layers for shared in pair),
        top_k=view.top_k,
    )
    if not found.masks and found.nsp_difference is None:
        return
    with inputs.heading("Where they agree"):
        export.comparison(found, traces)
    if found.masks:
        st.dataframe(
            comparison.agreement_rows(found, traces[0]),
            hide_index=True,
            width="stretch",
            key="w_agreement",
            column_config={
                "shared": st.column_config.ProgressColumn(
                    f"Shared among the top {view.top_k}", format="percent", min_value=0, max_value=1
                ),
                "divergence": st.column_config.ProgressColumn(
                    "Jensen-Shannon divergence",
                    format="%.3f bits",
                    min_value=0,
                    max_value=1,
                    help="0 bits: the same distribution. 1 bit: nothing in common.",
                ),
                "masked": "Masked",
                "one": f"{title(pair[0].name)} says",
                "other": f"{title(pair[1].name)} says",
            },
        )
        if found.folded:
            st.caption(
                f"One model knows only lower case: capital letters are counted as small ones, over the "
                f"{found.common_tokens:,} tokens both have."
            )
    if found.nsp_difference is not None:
        st.caption(f"P(IsNext) differs by {abs(found.nsp_difference):.3f}.")
    lost = len(found.unmatched_a) + len(found.unmatched_b)
    if lost:
        st.caption(f"{lost} masked pieces have no counterpart, as the models cut words differently.")


def _facts(pair, traces, infos):
    st.subheader("Size and speed", anchor=False)
    view = state.view()
    seconds = [comparison.latency(shared, view, trace.masks) for shared, trace in zip(pair, traces)]
    st.table(comparison.facts(pair, traces, infos, seconds))
    st.caption("Time: median of up to five warm passes on this machine, without attention maps.")


def _attention(pair, traces):
    st.subheader("Attention at the same depth", anchor=False)
    layers = aligned_layers(*(shared.config.num_hidden_layers for shared in pair))
    count = len(layers)
    place = st.select_slider(
        "Depth",
        range(count),
        format_func=lambda index: "layer {} | layer {}".format(*(layer + 1 for layer in layers[index])),
        **state.bound(
            "depth",
            "w_depth",
            read=lambda index: round(100 * (index + 1) / count),
            show=lambda depth: min(max(round(depth * count / 100) - 1, 0), count - 1),
        ),
    )
    dark = frame.is_dark()
    for column, shared, trace, layer, side in zip(
        st.columns(2, gap="large"), pair, traces, layers[place], "ab"
    ):
        with column:
            st.markdown(
                f"**{title(shared.name)}**, layer {layer + 1} of {shared.config.num_hidden_layers}, "
                "mean of its heads"
            )
            figure = plots.heatmap(
                trace,
                trace.attentions[layer].mean(axis=0, dtype="float32"),
                plots.select(trace),
                most=64,
                dark=dark,
                height=430,
            )
            st.plotly_chart(
                figure, key=f"w_compare_map_{side}", config=export.plot_config(f"layer-{layer + 1}")
            )
    st.plotly_chart(
        plots.depth_profile(comparison.spread(pair, traces), "mean entropy of a row, bits", dark),
        key="w_profile",
        config=export.plot_config("entropy"),
    )
    st.caption("How widely attention is spread in every layer: 0 bits is one place.")


def _offer(installed):
    if not downloads.allowed():
        return
    here = {info.name for info in installed}
    missing = [
        info for info in models.catalogue() if info.name in comparison.WANTED and info.name not in here
    ]
    if missing:
        st.subheader("The released models", anchor=False)
        st.caption("The preset is Base beside Large. They are fetched once, from the Hugging Face hub.")
        for info in missing:
            downloads.get_button(info, "compare")
