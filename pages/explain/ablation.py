"""Ablation: the model's answers with some of its parts switched off."""

import dataclasses

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.analyses import Call
from bert_tf.explain import ablate, clean_run, every_token, sweep
from bert_tf.explain.attribution.target import classifies
from bert_tf.plots.diverging import diverging_ramp
from bert_tf.plots.interventions.ablation import by_kind
from bert_tf.plots.numbers import percent
from bert_tf.plots.ranked_bars import LONGEST_LIST, ranked_bars
from pages.explain import ablation_parts
from pages.explain.snippets.ablation import snippet
from ui.elements import components, tables
from ui.elements.cards import class_card, with_top_k
from ui.elements.cells import cells
from ui.session import calls, jobs, state
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import number, signed

PAGE = Page(
    name="ablation",
    group="Explain",
    order=2,
    title="Ablation",
    question="What the answer depends on: switch parts off",
    terms="switch off heads layers importance prune pruning zero mean knockout",
    summary=(
        "heads, feed-forward blocks, layers and the attention to tokens switched off by a press: the answers "
        "(masked words, the pair, a discriminator's scores, a fine-tuned class) before and after, how far the "
        "other heads' attention moves; a sweep over all parts, ranked"
    ),
    presses={"": Press("td[data-at]", MASKED)},
    analyses=("ablation",),
    settings=("off", "tokens", "colour", "on", "at", "kind"),
    settings_help=(
        "what is off: `3-1.4.f_5-x` are heads 1 and 4 and the feed-forward block of layer 3, and layer 5; "
        "positions no token attends to, `2.7`; `effect` sweeps; `masks`, `next`, `replaced` or `class`; the "
        "token scored; `blocks` or `tokens`"
    ),
    long_settings={"off": "what is switched off"},
    opens_rows=True,
    snippet=snippet,
    in_float32=True,
)


_SWEEP = Call.of(sweep)
_SWEPT_AT_ONCE = 32  # the most tokens for which the page opens with a sweep
_SWEPT_TOKENS = 128  # the most tokens for which the sweep also switches off the attention to each token


def page():
    page_inputs = targets.page_inputs()
    if page_inputs is None:
        return
    shared, _, trace = page_inputs
    layers, heads = shared.config.num_hidden_layers, shared.config.num_attention_heads
    cells_off = ablation_parts.cells_from_text(state.setting("ablation.off", ""), layers, heads)
    ablation = ablation_parts.ablation_of_cells(cells_off, _tokens(trace), heads)
    colour, question = _switches(shared, trace, cells_off, ablation)
    # A thousand predictions are kept: a word that is not among them has less than 0.1%.
    call = Call.of(ablate, ablation=ablation, top_k=1000, attention_shifts=True)
    snippets.give(shared, trace, call, _SWEEP, question, _kind())
    clean = calls.result(shared, Call.of(clean_run), trace)
    effect = calls.result(shared, call, trace, clean=clean)
    left, right = st.columns([6, 5], gap="large")
    with left:
        sweep_result = _sweep(shared, trace, layers, heads) if colour == "effect" else None
        effects = None if sweep_result is None else _effects(sweep_result, trace, question, layers, heads)
        unit = _unit(shared, question) if effects is not None else None
        _grid(trace, effect, cells_off, effects, unit, (layers, heads), colour)
    with right:
        _answers(shared, trace, effect)
    if sweep_result is not None:
        _ranked(sweep_result, question, _unit(shared, question), trace, (layers, heads))


def _tokens(trace):
    """The positions, read from the link, that no token may attend to."""
    text = state.setting("ablation.tokens", "")
    positions = {int(part) for part in text.split(".") if part.isascii() and part.isdigit() and len(part) < 5}
    return tuple(sorted(position for position in positions if position < trace.length))


def _switches(shared, trace, cells_off, ablation):
    """Draw the widgets above the grid.

    While everything is on, no head looks elsewhere: the grid then opens with the effect of each part, if the text is
    short.

    Returns: (what the colours show, "shift" or "effect"; the answer whose effects are shown, as of `_question`).
    """
    is_on = not cells_off and not ablation.tokens
    first = "effect" if is_on and trace.length <= _SWEPT_AT_ONCE else "shift"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        colour = st.segmented_control(
            "Colours",
            ["shift", "effect"],
            format_func={"shift": "How other heads react", "effect": "Effect of each part alone"}.get,
            **state.bind_setting("ablation.colour", "w_ablation_colour", first, ("shift", "effect")),
            help=(
                "The effect of each part needs a sweep: every head, feed-forward block and layer is switched off once."
            ),
        )
        question = _question(shared, trace) if colour == "effect" else None
        if not is_on:
            st.button("Switch everything on", icon=":material/restart_alt:", key="w_ablation_reset", on_click=_reset)
    return colour, question


def _reset():
    state.set_setting("ablation.off", "", "")
    state.set_setting("ablation.tokens", "", "")


def _question(shared, trace):
    """The answer whose effects are shown: "class", "masks" or "next", or the position of a scored token."""
    available = {
        "class": classifies(shared.bert, trace),
        "masks": bool(trace.masks) and "mlm" in shared.bert.heads,
        "next": targets.has_pair_answer(shared, trace),
        "replaced": trace.replaced is not None,
    }
    questions = [name for name, is_available in available.items() if is_available]
    chosen = questions[0] if len(questions) == 1 else _answer(shared, questions)
    return targets.scored_token_picker("ablation", trace) if chosen == "replaced" else chosen


def _answer(shared, questions):
    return st.segmented_control(
        "Effect on",
        questions,
        format_func=lambda question: targets.question_name(shared, question) or "Masked words",
        required=True,
        **state.bind_setting("ablation.on", "w_ablation_on", questions[0], questions),
    )


def _grid(trace, effect, cells_off, effects, unit, size, colour):
    layers, heads = size
    dark = state.is_dark()

    def pressed(layer, column):
        before = ablation_parts.cells_from_text(state.setting("ablation.off", ""), layers, heads)
        state.set_setting("ablation.off", ablation_parts.cells_as_text(before ^ {(layer, column)}, heads), "")

    inputs.heading("Switch off")
    export.save("switched-off", _saved(effect), trace=trace)
    all_cells = ablation_parts.all_cells(layers, heads)
    if colour == "shift":
        shades = [
            _faint(effect.attention_shifts[layer, column]) if column < heads else None for layer, column in all_cells
        ]
        ramp, legend = plots.ramp(dark), ("looks as before", "looks elsewhere")
    else:
        shades = [None] * len(all_cells)  # until the effects are computed
        if effects is not None:
            shades = [round(0.5 + 0.5 * float(value), 3) for value in by_kind(effects).ravel()]
        ramp, legend = diverging_ramp(dark), ("opposes the answer", "supports it")
    cells(
        "c_ablation",
        "Heads by layers: press a cell to switch it off. Arrow keys move, Enter switches.",
        "layer",
        [str(layer + 1) for layer in range(layers)],
        [*(str(head + 1) for head in range(heads)), "FF", "layer"],
        [_tip(layer, column, effect, effects, unit, cells_off, heads) for layer, column in all_cells],
        ramp,
        pressed,
        shades=shades,
        off=[cell in cells_off for cell in all_cells],
        breaks=[heads, heads + 1],
        hint="Press a head, a feed-forward block (FF) or a whole layer to switch it off."
        + (" The colours of each of the three kinds are scaled to its strongest part." if effects is not None else ""),
        legend=legend,
    )
    st.multiselect(
        "No attention to",
        range(trace.length),
        format_func=lambda position: f"{position}: {trace.tokens[position]}",
        placeholder="Choose tokens that no token may look at",
        **_token_widget(trace),
    )
    st.caption(
        "A head that is switched off adds nothing; a layer that is switched off passes its input on unchanged. The"
        " effect of switching a part off is not the same as what the part does: other parts may take its place."
    )


def _saved(effect):
    """The effect with only as many predictions for each mask as a page may show."""
    most = state.limits().max_top_k
    predictions = {name: tuple(with_top_k(getattr(effect, name), most)) for name in ("before", "after")}
    return dataclasses.replace(effect, **predictions)


def _faint(share):
    """The square root of a share of attention: on the colour scale it makes small changes visible."""
    return round(float(np.sqrt(min(max(share, 0.0), 1.0))), 3)


def _token_widget(trace):
    state.set_widget("w_ablation_tokens", list(_tokens(trace)), trace.tokens)

    def pull():
        state.set_setting("ablation.tokens", ".".join(map(str, sorted(st.session_state["w_ablation_tokens"]))), "")

    return {"key": "w_ablation_tokens", "on_change": pull}


def _tip(layer, column, effect, effects, unit, cells_off, heads):
    """The tooltip of a cell."""
    text = ablation_parts.name(layer, column, heads).capitalize()
    if (layer, column) in cells_off:
        text += ", switched off"
    if effects is not None:
        return f"{text}: {signed(effects[layer, column], 3)} {unit}"
    if column < heads and (cells_off or effect.ablation.tokens):
        return f"{text}: {percent(effect.attention_shifts[layer, column])} of its attention goes elsewhere"
    return text


def _answers(shared, trace, effect):
    top_k = state.view().top_k
    answer_cards = targets.before_after_cards(effect.before, effect.after, top_k)
    inputs.heading("The answer, before and after")
    if effect.classes_after is not None:
        _class_answers(targets.classes(shared), effect)
    if answer_cards:
        components.bars("c_ablation_bars", answer_cards)
    if effect.before or effect.classes_after is not None:
        st.caption("The line marks the probability with everything switched on.")
    pair_shares = _pair_shares(effect)
    if pair_shares is not None:
        components.gauge("c_ablation_gauge", pair_shares[1], order=effect.nsp_after is None)
        st.caption(f"{targets.pair_question(shared).claim}: {percent(pair_shares[0])} with everything switched on.")
    if effect.replaced_after is not None:
        _scores(trace, effect)


def _scores(trace, effect):
    """The probability that each token was replaced, before and after."""
    progress_column = st.column_config.ProgressColumn
    tables.show(
        {"token": list(trace.tokens), "before": effect.replaced_before, "after": effect.replaced_after},
        hide_index=True,
        width="stretch",
        key="w_ablation_scores",
        column_config={
            "token": "Token",
            "before": progress_column("Replaced, everything on", format="percent", min_value=0, max_value=1),
            "after": progress_column("Replaced, parts off", format="percent", min_value=0, max_value=1),
        },
    )


def _class_answers(settings, effect):
    before, after = effect.classes_before, effect.classes_after
    if settings.regression:
        st.metric("Score", number(after["value"]), f"{after['value'] - before['value']:+.2f}", width="content")
    else:
        components.bars("c_ablation_classes", [class_card(after, before)])


def _pair_shares(effect):
    """P(IsNext), or P(in order), before and after; None for a model or text without either."""
    if effect.nsp_after is not None:
        return float(effect.nsp_before.is_next), float(effect.nsp_after.is_next)
    if effect.sop_after is not None:
        return float(effect.sop_before.in_order), float(effect.sop_after.in_order)
    return None


def _sweep(shared, trace, layers, heads):
    """The ``AblationSweep`` over all parts, each switched off alone; None until the background job has finished."""
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks)

    def work(progress):
        parts = [
            ablation_parts.ablation_of_cells([cell], (), heads) for cell in ablation_parts.all_cells(layers, heads)
        ]
        tokens = every_token(trace) if trace.length <= _SWEPT_TOKENS else ()
        return shared.run(_SWEEP.run, trace, (*parts, *tokens), progress=progress)

    return jobs.result(
        "ablation", key, "Switching off every part, one at a time", work, patience=jobs.SHORT, skeleton=False
    )


def _unit(shared, question):
    """The unit of the effects on an answer."""
    if question == "next" or isinstance(question, int):
        return "of probability"
    if question == "class" and targets.classes(shared).regression:
        return "of the value"
    return "nats of log-probability"


def _effects(sweep_result, trace, question, layers, heads):
    """The answer's loss without each cell of the grid, float64 [L, N + 2]."""
    return sweep_result.score_drop(trace, question)[: layers * (heads + 2)].reshape(layers, heads + 2)


_KINDS = {"heads": "Heads", "blocks": "Blocks and layers", "tokens": "Attention to a token"}


def _kind():
    """The kind of parts in the list of the strongest parts."""
    kind = state.setting("ablation.kind", "heads")
    return kind if kind in _KINDS else "heads"


def _ranked(sweep_result, question, unit, trace, size):
    inputs.heading("The strongest parts")
    layers, heads = size
    names = [ablation_parts.name(*cell, heads) for cell in ablation_parts.all_cells(layers, heads)]
    names += [f"attention to {position}: {trace.tokens[position]}" for position in range(trace.length)]
    kind = st.segmented_control(
        "Parts",
        list(_KINDS),
        format_func=_KINDS.get,
        label_visibility="collapsed",
        **state.bind_setting("ablation.kind", "w_ablation_kind", "heads", _KINDS),
    )
    candidates = _of_kind(kind, layers, heads, len(sweep_result.ablations))
    if not candidates:
        st.caption(f"The attention to single tokens is swept in texts of up to {_SWEPT_TOKENS} tokens.")
        return
    strengths = sweep_result.score_drop(trace, question)
    order = sorted(candidates, key=lambda index: -abs(strengths[index]))

    export.save("strongest-parts", sweep_result.score_drops(trace, question, unit), trace=trace)
    strongest = order[:LONGEST_LIST]
    figures.show(
        "The strongest parts",
        ranked_bars(
            [names[index] for index in strongest],
            [strengths[index] for index in strongest],
            f"loss of the answer without it, {unit}",
            state.is_dark(),
        ),
        key="w_ablation_ranked",
        config=export.plot_config("strongest-parts"),
    )
    st.caption(
        "Each part is switched off alone: the likeliest answer loses without a blue part and gains without an orange "
        "one. Effects do not add up: of two heads that do the same, the model can do without either."
    )


def _of_kind(kind, layers, heads, count):
    """The indices of a sweep's ablations that are of one kind; count: how many ablations there are."""
    width = heads + 2
    if kind == "tokens":
        return list(range(layers * width, count))
    return [index for index in range(layers * width) if (index % width < heads) == (kind == "heads")]
