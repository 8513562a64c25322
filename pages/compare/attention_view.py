"""The lower half of the page Side by side: the attention maps, or the logit lens, of both sides."""

import streamlit as st

from bert_tf import plots
from bert_tf.analyses import Call
from bert_tf.explain import aligned_layers, logit_lens
from bert_tf.explain.models.compared_attention import AlignedAttention, ComparedAttention
from bert_tf.explain.models.compared_layers import ComparedLayers, LayerAnswers
from bert_tf.plots.models.compare import difference_map
from bert_tf.plots.models.compared_attention import paired_tokens
from bert_tf.runtime.half_precision import to_float32
from pages.compare import comparison_inputs, layers_view
from ui.elements import components
from ui.elements.attention_page import head_name
from ui.session import calls, state
from ui.shell import snippets
from ui.widgets import attention_controls, comparison, export, figures, inputs, targets

LOOKS = {"attention": "Attention", "layers": "Logit lens"}
_DRAWN = {"heatmap": "Heatmaps", "lines": "Lines", "difference": "Difference"}
_MOST = 64  # how many tokens of a side are drawn


def shows_layers():
    """Whether the visitor chose the logit lens, which takes hidden states and no attention maps."""
    return state.setting("side_by_side.look", "attention") == "layers"


def draw(pair, traces, result):
    """Draw the attention maps or the logit lens of both sides.

    Args:
        pair: two ``ComparisonInput``s. traces: their ``Trace``s, with hidden states if ``shows_layers()``, else with
            attention maps. result: their ``ComparedAnswers``.
    """
    look = st.segmented_control(
        "Look at",
        list(LOOKS),
        format_func=LOOKS.get,
        label_visibility="collapsed",
        required=True,
        **state.bind_setting("side_by_side.look", "w_side_by_side_look", "attention", LOOKS),
    )
    if look == "layers":
        _layers(pair, traces, result.comparison)
    else:
        _attention(pair, traces, comparison.by_name(pair, (result.a.entropy, result.b.entropy)))


def _attention(pair, traces, entropies):
    heading = inputs.heading("Attention at the same relative depth")
    counts = [side.shared.config.num_hidden_layers for side in pair]
    layers = aligned_layers(*counts)
    place, head, drawn = _settings(layers, traces)
    start = _start(traces, drawn)
    chosen = layers[place]
    window = None if drawn == "heatmap" else (start, _MOST)
    snippets.add(attention=(chosen, head, drawn, window))
    maps = [_weights(trace, layer, head) for trace, layer in zip(traces, chosen)]
    if drawn == "difference":
        _difference(pair, traces, maps, chosen, start)
    else:
        columns = st.columns(2, gap="large")
        for column, side, trace, layer, count, weights in zip(columns, pair, traces, chosen, counts, maps):
            with column:
                heads = "mean of its heads" if head is None else f"head {head + 1}"
                st.markdown(f"**{side.name}**, layer {layer + 1} of {count}, {heads}")
                _draw_map(side, trace, layer, head, weights, drawn, start)
    lengths = [trace.length for trace in traces]
    if drawn == "heatmap" and max(lengths) > _MOST:
        st.caption("A cell is the greatest weight of a block of tokens. Lines show single tokens, a part at a time.")
    if lengths[0] != lengths[1]:
        st.caption(f"No difference can be drawn: the sides have {lengths[0]} and {lengths[1]} tokens.")
    if head is None:
        st.caption("A mean hides single heads, such as one that attends to one token alone.")
    elif pair[0].shared is not pair[1].shared:
        st.caption("Heads of two models with the same number have nothing else in common.")
    attention_controls.warning()
    with heading:
        _save_attention(pair, traces, maps, chosen, head, entropies)
    _entropy(entropies)


def _settings(layers, traces):
    """The widgets of the maps; returns (index of the pair of layers, head or None for the mean, a key of `_DRAWN`)."""
    last = len(layers) - 1
    heads = min(trace.attentions.shape[1] for trace in traces)
    ways = [way for way in _DRAWN if way != "difference" or traces[0].length == traces[1].length]
    depths = [" | ".join(f"layer {layer + 1}" for layer in pair) for pair in layers]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        place = st.select_slider(
            "Depth",
            range(last + 1),
            format_func=depths.__getitem__,
            width=380,
            **state.bind_field(
                "depth",
                "w_depth",
                read=lambda index: round(100 * (index + 1) / (last + 1)),
                show=lambda depth: min(max(round(depth * (last + 1) / 100) - 1, 0), last),
                offered=depths,
            ),
        )
        head = st.selectbox(
            "Head",
            range(heads + 1),
            format_func=lambda number: f"Head {number}" if number else "Mean of all",
            width=160,
            **state.bind_setting("side_by_side.head", "w_side_by_side_head", 0, range(heads + 1)),
        )
        drawn = st.segmented_control(
            "Drawn as",
            ways,
            format_func=_DRAWN.get,
            required=True,
            **state.bind_setting("side_by_side.drawn", "w_side_by_side_drawn", "heatmap", ways),
        )
    return place, head - 1 if head else None, drawn


def _start(traces, drawn):
    """The first token that is drawn; of a long text a slider chooses it."""
    longest = max(trace.length for trace in traces)
    if longest <= _MOST or drawn == "heatmap":
        return 0
    return attention_controls.first_token(longest, _MOST, f"{_MOST} tokens from")


def _weights(trace, layer, head):
    maps = trace.attentions[layer]
    return to_float32(maps).mean(axis=0) if head is None else maps[head]


def _draw_map(side, trace, layer, head, weights, drawn, start):
    selection, name = plots.select(trace), f"{head_name(layer, head)}-{side.key}"
    if drawn == "lines":
        export.save_drawing(f"Lines, {side.name}", name)
        components.lines(
            f"c_side_by_side_lines_{side.key}",
            plots.lines(trace, weights, selection.window(start, _MOST)),
            name,
            caption=export.trace_caption(name, trace),
            page=lambda: attention_controls.saved_page(trace, [(layer, head)], selection),
        )
        return
    figures.show(
        f"Attention of {side.name}",
        plots.heatmap(trace, weights, selection, most=_MOST, dark=state.is_dark(), height=430),
        key=f"w_side_by_side_map_{side.key}",
        config=export.plot_config(name),
    )


def _save_attention(pair, traces, maps, layers, head, entropies):
    """Offer both attention maps in full, and the entropy of every layer, in the menu Save."""
    names, (entropy_a, entropy_b) = tuple(entropies), entropies.values()
    result_class = AlignedAttention if traces[0].length == traces[1].length else ComparedAttention
    result = result_class(
        models=tuple(side.shared.name for side in pair),
        names=names,
        layers=tuple(layers),
        head=head,
        tokens_a=traces[0].tokens,
        tokens_b=traces[1].tokens,
        weights_a=maps[0],
        weights_b=maps[1],
        entropy_a=entropy_a,
        entropy_b=entropy_b,
    )
    comparison_inputs.save("attention-compared", result, pair, map(export.texts_of, traces))


def _difference(pair, traces, maps, layers, start):
    tokens = paired_tokens(traces[0].tokens, traces[1].tokens)[start : start + _MOST]
    weights_a, weights_b = (weights[start : start + _MOST, start : start + _MOST].astype("float32") for weights in maps)
    st.markdown(f"**{pair[0].name}**, layer {layers[0] + 1}, minus **{pair[1].name}**, layer {layers[1] + 1}")
    figures.show(
        "Difference of the two attention maps",
        difference_map(weights_a - weights_b, tokens, state.is_dark()),
        key="w_side_by_side_difference",
        config=export.plot_config("difference"),
    )
    st.caption(
        "The first side attends more where the map is blue, the second side where it is orange. Tokens are paired by "
        "their position."
    )


def _entropy(entropies):
    figures.show(
        "How widely attention is spread in every layer",
        plots.depth_profile(entropies, "mean entropy of a row, bits", state.is_dark()),
        key="w_profile",
        config=export.plot_config("entropy"),
    )
    st.caption("The entropy of the attention in every layer: 0 bits means that all attention goes to one token.")


def _layers(pair, traces, compared):
    both_classify = all(targets.classes(side.shared) for side in pair)
    if both_classify and layers_view.classes(pair):
        snippets.add(class_call=layers_view.CLASS_LENS)
    if not compared.masks:
        if not both_classify:
            st.info(layers_view.lacking(pair), icon=":material/touch_app:")
        return
    place = 0
    if len(compared.masks) > 1:
        labels = [f"{number}: {_masked_token(pair, mask)}" for number, mask in enumerate(compared.masks, 1)]
        place = st.selectbox(
            "Mask",
            range(len(labels)),
            format_func=labels.__getitem__,
            width=260,
            **state.bind_setting("side_by_side.at", "w_side_by_side_at", 0, range(len(labels)), labels),
        )
    mask = compared.masks[place]
    lens_calls = [Call.of(logit_lens, positions=[at], top_k=1) for at in (mask.position_a, mask.position_b)]
    snippets.add(lens_calls=lens_calls)
    lenses = [
        calls.result(side.shared, call, trace, name=f"compare_lens_{side.key}")
        for side, trace, call in zip(pair, traces, lens_calls)
    ]
    counts = [side.shared.config.num_hidden_layers for side in pair]
    rows = LayerAnswers.rows(comparison.layer_rows(lenses, pair, aligned_layers(*counts), compared.case_folded))
    result = ComparedLayers(tuple(side.shared.name for side in pair), rows, _curves(pair, lenses))
    inputs.heading("The likeliest word after each layer")
    comparison_inputs.save("layers-compared", result, pair, map(export.texts_of, traces))
    left, right = st.columns([6, 5], gap="medium")
    with left:
        layers_view.table(pair, rows, "w_side_by_side_layers")
    with right:
        figures.show(
            "Each side's prediction after every layer",
            result.figure(dark=state.is_dark()),
            key="w_side_by_side_answers",
            config=export.plot_config("answers"),
        )
    st.caption(
        "In the table ≠ marks layers whose likeliest words differ. The head for masked words was trained on the last "
        "layer alone: an earlier layer may hold the answer in a form that the head cannot read.",
        help="The head for masked words reads every layer's hidden state, at the same relative depth. Right: the "
        "probability of each side's own final prediction.",
    )


def _curves(pair, lenses):
    """The probability of each side's own final prediction after every hidden state: dict name -> float [L+1]."""
    names = [side.name for side in pair]
    if names[0] == names[1]:
        names = [side.key.upper() for side in pair]
    return {f"{name}: {lens.answers[0].token}": lens.answer_probabilities[0] for name, lens in zip(names, lenses)}


def _masked_token(pair, mask):
    return pair[0].encoding.tokens[mask.position_a]
