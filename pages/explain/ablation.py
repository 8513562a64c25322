"""Ablation: what the model says without some of its parts."""

import dataclasses

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.explain import ablate, clean_run, every_token, sweep
from bert_tf.plots.diverging import diverging_ramp
from bert_tf.plots.interventions.ablation import LONGEST_LIST, by_kind, ranked_bars
from pages.explain import ablation_parts
from pages.explain.snippets.ablation import snippet
from ui.elements import components
from ui.elements.cards import class_card, with_top_k
from ui.elements.cells import cells
from ui.session import jobs, state
from ui.session.session_cache import cached
from ui.shell import frame, snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, figures, inputs, targets
from ui.widgets.formatting import percent

PAGE = Page(
    name="ablation",
    group="Explain",
    order=2,
    title="Ablation",
    question="What the answer hangs on: switch parts off",
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
        "positions nobody attends to, `2.7`; `effect` sweeps; `masks`, `next`, `replaced` or `class`; the "
        "token scored; `blocks` or `tokens`"
    ),
    long_settings={"off": "what is switched off"},
    opens_rows=True,
    snippet=snippet,
)


_SWEPT_TOKENS = 128  # tokens up to which the attention to each is swept too


def page():
    opened = targets.page_inputs()
    if opened is None:
        return
    shared, _, trace = opened
    layers, heads = shared.config.num_hidden_layers, shared.config.num_attention_heads
    places = ablation_parts.cells_from_text(state.setting("ablation.off", ""), layers, heads)
    ablation = ablation_parts.ablation_of_cells(places, _tokens(trace), heads)
    colour, on = _switches(shared, trace, places, ablation)
    snippets.give(shared, trace, ablation, on, _kind())
    effect = cached("ablation", (trace, ablation), lambda: _effect(shared, trace, ablation))
    left, right = st.columns([6, 5], gap="large")
    with left:
        swept = _sweep(shared, trace, layers, heads) if colour == "effect" else None
        effects = None if swept is None else _effects(swept, trace, on, layers, heads)
        _grid(trace, effect, places, effects, _unit(shared, on) if effects is not None else None, (layers, heads))
    with right:
        _answers(shared, trace, effect)
    if swept is not None:
        _ranked(swept, effects, on, _unit(shared, on), trace, (layers, heads))


def _effect(shared, trace, ablation):
    clean = cached("ablation_intact", trace, lambda: shared.run(clean_run, trace))
    # With a thousand guesses, one that is not among them has less than 0.1%.
    return shared.run(ablate, trace, ablation, 1000, attention_shifts=True, clean=clean)


def _tokens(trace):
    """Positions nobody may attend to, from the link."""
    text = state.setting("ablation.tokens", "")
    numbers = {int(part) for part in text.split(".") if part.isascii() and part.isdigit() and len(part) < 5}
    return tuple(sorted(number for number in numbers if number < trace.length))


def _switches(shared, trace, places, ablation):
    """What lies above the grid; returns what its colours are to show, and which answer effects are of."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        colour = st.segmented_control(
            "Colours",
            ["shift", "effect"],
            format_func={"shift": "How other heads react", "effect": "Effect of each part alone"}.get,
            **state.bind_setting("ablation.colour", "w_ablation_colour", "shift", ("shift", "effect")),
            help=(
                "The effect of each part takes a sweep: every head, feed-forward block and layer is switched off once."
            ),
        )
        on = _question(shared, trace) if colour == "effect" else None
        if places or ablation.tokens:
            st.button("Switch everything on", icon=":material/restart_alt:", key="w_ablation_reset", on_click=_reset)
    return colour, on


def _reset():
    state.set_setting("ablation.off", "", "")
    state.set_setting("ablation.tokens", "", "")


def _question(shared, trace):
    """Which answer effects are of: "class", "masks" or "next", or the position of a token that is scored."""
    there = {
        "class": targets.classes(shared) is not None,
        "masks": bool(trace.masks) and "mlm" in shared.bert.heads,
        "next": targets.has_pair_answer(shared, trace),
        "replaced": trace.replaced is not None,
    }
    places = [place for place, is_there in there.items() if is_there]
    chosen = places[0] if len(places) == 1 else _answer(shared, places)
    return targets.scored_token_picker("ablation", trace) if chosen == "replaced" else chosen


def _answer(shared, places):
    return st.segmented_control(
        "Effect on",
        places,
        format_func=lambda place: targets.question_name(shared, place) or "Masked words",
        required=True,
        **state.bind_setting("ablation.on", "w_ablation_on", places[0], places),
    )


def _grid(trace, effect, places, effects, unit, size):
    layers, heads = size
    dark = frame.is_dark()

    def pressed(layer, column):
        now = ablation_parts.cells_from_text(state.setting("ablation.off", ""), layers, heads)
        state.set_setting("ablation.off", ablation_parts.cells_as_text(now ^ {(layer, column)}, heads), "")

    with inputs.heading("Switch off"):
        export.save("switched-off", _saved(effect), {"model": trace.model})
    every = ablation_parts.all_cells(layers, heads)
    if effects is None:
        shades = [_faint(effect.attention_shifts[layer, column]) if column < heads else None for layer, column in every]
        ramp, legend = plots.ramp(dark), ("looks as before", "looks elsewhere")
    else:
        shades = [round(0.5 + 0.5 * float(value), 3) for value in by_kind(effects).ravel()]
        ramp, legend = diverging_ramp(dark), ("speaks against the answer", "speaks for it")
    cells(
        "c_ablation",
        "Heads by layers: press one to switch it off. Arrow keys move, Enter switches.",
        "layer",
        [str(layer + 1) for layer in range(layers)],
        [*(str(head + 1) for head in range(heads)), "FF", "layer"],
        [_tip(layer, column, effect, effects, unit, places, heads) for layer, column in every],
        ramp,
        pressed,
        shades=shades,
        off=[place in places for place in every],
        breaks=[heads, heads + 1],
        hint="Press a head, a feed-forward block (FF) or a whole layer to switch it off."
        + (" Each of the three kinds is coloured by its own strongest." if effects is not None else ""),
        legend=legend,
    )
    st.multiselect(
        "No attention to",
        range(trace.length),
        format_func=lambda position: f"{position}: {trace.tokens[position]}",
        placeholder="Choose tokens nobody may look at",
        **_token_widget(trace),
    )
    st.caption(
        "A head switched off adds nothing; a layer switched off hands on what it was given. What a model does"
        " without a part it was trained with is not the same as what the part does: others may stand in"
        " for it."
    )


def _saved(effect):
    """The effect with as many predictions a mask as a page may show."""
    most = state.limits().max_top_k
    kept = {name: tuple(with_top_k(getattr(effect, name), most)) for name in ("before", "after")}
    return dataclasses.replace(effect, **kept)


def _faint(share):
    """A share of attention on the colour scale, by its root, so that small changes show."""
    return round(float(np.sqrt(min(max(share, 0.0), 1.0))), 3)


def _token_widget(trace):
    state.set_widget("w_ablation_tokens", list(_tokens(trace)))

    def pull():
        state.set_setting("ablation.tokens", ".".join(map(str, sorted(st.session_state["w_ablation_tokens"]))), "")

    return {"key": "w_ablation_tokens", "on_change": pull}


def _tip(layer, column, effect, effects, unit, places, heads):
    said = ablation_parts.name(layer, column, heads).capitalize()
    if (layer, column) in places:
        said += ", switched off"
    if effects is not None:
        return f"{said}: {effects[layer, column]:+.3f} {unit}"
    if column < heads and (places or effect.ablation.tokens):
        return f"{said}: {percent(effect.attention_shifts[layer, column])} of its attention goes elsewhere"
    return said


def _answers(shared, trace, effect):
    top_k = state.view().top_k
    shown = targets.before_after_cards(effect.before, effect.after, top_k)
    inputs.heading("The answer, before and after")
    if effect.classes_after is not None:
        _class_answers(targets.classes(shared), effect)
    if shown:
        components.bars("c_ablation_bars", shown)
    if effect.before or effect.classes_after is not None:
        st.caption("The line marks what it was with everything switched on.")
    share = _pair_shares(effect)
    if share is not None:
        components.gauge("c_ablation_gauge", share[1], order=effect.nsp_after is None)
        st.caption(f"{targets.pair_question(shared).claim}: {percent(share[0])} with everything switched on.")
    if effect.replaced_after is not None:
        _scores(trace, effect)


def _scores(trace, effect):
    """The probability that each token was replaced, before and after."""
    of_share = st.column_config.ProgressColumn
    st.dataframe(
        {"token": list(trace.tokens), "before": effect.replaced_before, "after": effect.replaced_after},
        hide_index=True,
        width="stretch",
        key="w_ablation_scores",
        column_config={
            "token": "Token",
            "before": of_share("Replaced, all on", format="percent", min_value=0, max_value=1),
            "after": of_share("As switched off", format="percent", min_value=0, max_value=1),
        },
    )


def _class_answers(settings, effect):
    before, after = effect.classes_before, effect.classes_after
    if settings.regression:
        st.metric("Score", f"{after['value']:.2f}", f"{after['value'] - before['value']:+.2f}", width="content")
    else:
        components.bars("c_ablation_classes", [class_card(after, before)])


def _pair_shares(effect):
    """P(IsNext), or P(in order), before and after; None where there is no such answer."""
    if effect.nsp_after is not None:
        return float(effect.nsp_before.is_next), float(effect.nsp_after.is_next)
    if effect.sop_after is not None:
        return float(effect.sop_before.in_order), float(effect.sop_after.in_order)
    return None


def _sweep(shared, trace, layers, heads):
    """The sweep over all parts, each alone, or None while it is not there."""
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks)

    def work(progress):
        alone = [
            ablation_parts.ablation_of_cells([place], (), heads) for place in ablation_parts.all_cells(layers, heads)
        ]
        tokens = every_token(trace) if trace.length <= _SWEPT_TOKENS else ()
        return shared.run(sweep, trace, (*alone, *tokens), progress=progress)

    return jobs.result("ablation", key, "Switching off every part, one at a time", work, patience=jobs.SHORT)


def _unit(shared, on):
    """What effects on an answer are counted in."""
    if on == "next" or isinstance(on, int):
        return "of probability"
    if on == "class" and targets.classes(shared).regression:
        return "of the value"
    return "nats of log-probability"


def _effects(swept, trace, on, layers, heads):
    return swept.score_drop(trace, on)[: layers * (heads + 2)].reshape(layers, heads + 2)


_KINDS = {"heads": "Heads", "blocks": "Blocks and layers", "tokens": "Attention to a token"}


def _kind():
    """The kind of parts in the list of the strongest."""
    kind = state.setting("ablation.kind", "heads")
    return kind if kind in _KINDS else "heads"


def _ranked(swept, effects, on, unit, trace, size):
    heading = inputs.heading("The strongest parts")
    layers, heads = size
    names = [ablation_parts.name(*place, heads) for place in ablation_parts.all_cells(layers, heads)]
    names += [f"attention to {position}: {trace.tokens[position]}" for position in range(trace.length)]
    kind = st.segmented_control(
        "Parts",
        list(_KINDS),
        format_func=_KINDS.get,
        label_visibility="collapsed",
        **state.bind_setting("ablation.kind", "w_ablation_kind", "heads", _KINDS),
    )
    chosen = _of_kind(kind, layers, heads, len(swept.ablations))
    if not chosen:
        st.caption(f"The attention to single tokens is swept in texts of up to {_SWEPT_TOKENS} tokens.")
        return
    strengths = swept.score_drop(trace, on)
    order = sorted(chosen, key=lambda index: -abs(strengths[index]))

    with heading:
        export.save("strongest-parts", swept.score_drops(trace, on, unit), {"model": trace.model})
    shown = order[:LONGEST_LIST]
    figures.show(
        "The strongest parts",
        ranked_bars(
            [names[index] for index in shown],
            [strengths[index] for index in shown],
            f"what the answer loses without it, {unit}",
            frame.is_dark(),
        ),
        key="w_ablation_ranked",
        config=export.plot_config("strongest-parts"),
    )
    st.caption(
        "Each part switched off alone. Blue: the likeliest answer loses without it. Orange: it gains. Effects"
        " do not add up: two heads that do the same can each be spared."
    )


def _of_kind(kind, layers, heads, count):
    """Indices of a sweep's ablations of one kind."""
    width = heads + 2
    if kind == "tokens":
        return list(range(layers * width, count))
    return [index for index in range(layers * width) if (index % width < heads) == (kind == "heads")]
