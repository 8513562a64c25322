"""Switch off: what the model says without some of its parts."""

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.explain import ablate, every_token, sweep
from bert_tf.plots.diverging import diverging_ramp
from bert_tf.plots.effects import by_kind, effects_map, ranked_bars
from ui import components, export, frame, inputs, jobs, parts, state, why
from ui.cells import cells
from ui.kept import kept
from ui.words import percent

_SWEPT_TOKENS = 128  # tokens up to which the attention to each is swept too
_LONGEST_LIST = 15


def page():
    opened = inputs.opened("What the answer hangs on")
    if opened is None:
        return
    shared, encoding = opened
    trace = why.traced(shared, encoding)
    if trace is None or not why.has_question(shared, trace):
        return
    layers, heads = shared.config.num_hidden_layers, shared.config.num_attention_heads
    places = parts.read(state.setting("ablation.off", ""), layers, heads)
    ablation = parts.ablation_of(places, _tokens(trace), heads)
    colour = _switches(places, ablation)
    on = _question(shared, trace)
    effect = kept("ablation", (trace, ablation), lambda: _effect(shared, trace, ablation))
    left, right = st.columns([6, 5], gap="large")
    with left:
        swept = _sweep(shared, trace, layers, heads) if colour == "effect" else None
        effects = None if swept is None else _effects(swept, trace, on, layers, heads)
        _grid(trace, effect, places, effects, on, (layers, heads))
    with right:
        _answers(trace, effect)
    if swept is not None:
        _ranked(swept, effects, on, trace, (layers, heads))


def _effect(shared, trace, ablation):
    # With a thousand guesses, one that is not among them has less than 0.1%.
    return shared.run(ablate, trace, ablation, 1000, False, True)


def _tokens(trace):
    """Positions nobody may attend to, from the link."""
    text = state.setting("ablation.tokens", "")
    numbers = {int(part) for part in text.split(".") if part.isascii() and part.isdigit() and len(part) < 5}
    return tuple(sorted(number for number in numbers if number < trace.length))


def _switches(places, ablation):
    """What lies above the grid; returns what its colours are to show."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        colour = st.segmented_control(
            "Colours",
            ["shift", "effect"],
            format_func={"shift": "How other heads react", "effect": "Effect of each part alone"}.get,
            **state.bound_setting("ablation.colour", "w_ablation_colour", "shift", ("shift", "effect")),
            help=(
                "The effect of each part takes a sweep: every head, feed-forward block and layer is switched"
                " off once."
            ),
        )
        if places or ablation.tokens:
            st.button(
                "Switch everything on", icon=":material/restart_alt:", key="w_ablation_reset", on_click=_reset
            )
    return colour


def _reset():
    state.set_setting("ablation.off", "", "")
    state.set_setting("ablation.tokens", "", "")


def _question(shared, trace):
    """Which answer effects are of: "masks" or "next"."""
    both = bool(trace.masks) and why.judges_pair(shared, trace)
    if not both:
        return "masks" if trace.masks else "next"
    return st.segmented_control(
        "Effect on",
        ["masks", "next"],
        format_func={"masks": "Masked words", "next": "Next sentence"}.get,
        **state.bound_setting("ablation.on", "w_ablation_on", "masks", ("masks", "next")),
    )


def _grid(trace, effect, places, effects, on, size):
    layers, heads = size
    dark = frame.is_dark()

    def pressed(layer, column):
        now = parts.read(state.setting("ablation.off", ""), layers, heads)
        state.set_setting("ablation.off", parts.written(now ^ {(layer, column)}, heads), "")

    with inputs.heading("Switch off"):
        export.menu(
            "switched-off",
            _HEADER,
            lambda: _rows(effect, effects, size),
            lambda: _record(trace, effect, effects, places, on, heads),
            lambda: _figure(effect, effects, on, dark),
        )
    every = parts.every(layers, heads)
    if effects is None:
        shades = [_faint(effect.shifts[layer, column]) if column < heads else None for layer, column in every]
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
        [_tip(layer, column, effect, effects, on, places, heads) for layer, column in every],
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


def _faint(share):
    """A share of attention on the colour scale, by its root, so that small changes show."""
    return round(float(np.sqrt(min(max(share, 0.0), 1.0))), 3)


def _token_widget(trace):
    chosen = list(_tokens(trace))
    if st.session_state.get("w_ablation_tokens") != chosen:
        st.session_state["w_ablation_tokens"] = chosen

    def pull():
        state.set_setting(
            "ablation.tokens", ".".join(map(str, sorted(st.session_state["w_ablation_tokens"]))), ""
        )

    return {"key": "w_ablation_tokens", "on_change": pull}


def _tip(layer, column, effect, effects, on, places, heads):
    said = parts.name(layer, column, heads).capitalize()
    if (layer, column) in places:
        said += ", switched off"
    if effects is not None:
        return f"{said}: {effects[layer, column]:+.3f} {_UNITS[on]}"
    if column < heads and (places or effect.ablation.tokens):
        return f"{said}: {percent(effect.shifts[layer, column])} of its attention goes elsewhere"
    return said


def _answers(trace, effect):
    st.subheader("The answer, before and after", anchor=False)
    if effect.before:
        components.bars("c_ablation_bars", why.changed_cards(effect.before, effect.after, state.view().top_k))
        st.caption("The line marks what it was with everything switched on.")
    if effect.nsp_after is not None:
        components.gauge("c_ablation_gauge", float(effect.nsp_after.is_next))
        st.caption(f"B follows A: {percent(effect.nsp_before.is_next)} with everything switched on.")


def _sweep(shared, trace, layers, heads):
    """The sweep over all parts, each alone, or None while it is not there."""
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, trace.masks)

    def work(progress):
        alone = [parts.ablation_of([place], (), heads) for place in parts.every(layers, heads)]
        tokens = every_token(trace) if trace.length <= _SWEPT_TOKENS else ()
        return shared.run(sweep, trace, (*alone, *tokens), progress=progress)

    return jobs.result("ablation", key, "Switching off every part, one at a time", work)


_UNITS = {"masks": "nats of log-probability", "next": "of probability"}


def _strengths(swept, trace, on):
    """float64 [A]: how much the answer loses without each part."""
    if on == "masks":
        return -swept.changes.mean(axis=1)
    follows = trace.nsp.is_next >= 0.5
    return -swept.nsp_changes if follows else swept.nsp_changes


def _effects(swept, trace, on, layers, heads):
    return _strengths(swept, trace, on)[: layers * (heads + 2)].reshape(layers, heads + 2)


def _ranked(swept, effects, on, trace, size):
    st.subheader("The strongest parts", anchor=False)
    layers, heads = size
    names = [parts.name(*place, heads) for place in parts.every(layers, heads)]
    names += [f"attention to {position}: {trace.tokens[position]}" for position in range(trace.length)]
    kinds = {"heads": "Heads", "blocks": "Blocks and layers", "tokens": "Attention to a token"}
    kind = st.segmented_control(
        "Parts",
        list(kinds),
        format_func=kinds.get,
        label_visibility="collapsed",
        **state.bound_setting("ablation.kind", "w_ablation_kind", "heads", kinds),
    )
    chosen = _of_kind(kind, layers, heads, len(swept.ablations))
    if not chosen:
        st.caption(f"The attention to single tokens is swept in texts of up to {_SWEPT_TOKENS} tokens.")
        return
    strengths = _strengths(swept, trace, on)
    order = sorted(chosen, key=lambda index: -abs(strengths[index]))[:_LONGEST_LIST]
    figure = ranked_bars(
        [names[index] for index in order],
        [strengths[index] for index in order],
        f"what the answer loses without it, {_UNITS[on]}",
        frame.is_dark(),
    )
    st.plotly_chart(figure, key="w_ablation_ranked", config=export.plot_config("strongest-parts"))
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


def _figure(effect, effects, on, dark):
    if effects is not None:
        return effects_map(effects, _UNITS[on], dark)
    return plots.predictions(effect.after or (), dark) if effect.after else _gauge_bars(effect, dark)


def _gauge_bars(effect, dark):
    values = [effect.nsp_before.is_next, effect.nsp_after.is_next]
    return ranked_bars(["everything on", "as switched off"], values, "probability that B follows A", dark)


_HEADER = ("layer", "part", "attention_moved", "effect_alone")


def _rows(effect, effects, size):
    layers, heads = size
    for layer, column in parts.every(layers, heads):
        yield (
            layer + 1,
            {heads: "feed-forward", heads + 1: "layer"}.get(column, f"head {column + 1}"),
            float(effect.shifts[layer, column]) if column < heads else "",
            "" if effects is None else float(effects[layer, column]),
        )


def _record(trace, effect, effects, places, on, heads):
    def answers(found):
        return [
            {
                "position": one.position,
                "original": one.original,
                "predictions": [
                    {"token": p.token, "probability": p.probability} for p in one.predictions[:20]
                ],
            }
            for one in found
        ]

    return {
        "model": trace.model,
        "tokens": list(trace.tokens),
        "off": [parts.name(*place, heads) for place in sorted(places)],
        "no_attention_to": list(effect.ablation.tokens),
        "before": answers(effect.before),
        "after": answers(effect.after),
        "is_next_before": effect.nsp_before and effect.nsp_before.is_next,
        "is_next_after": effect.nsp_after and effect.nsp_after.is_next,
        "log_probability_changes": effect.changes.tolist(),
        "divergences_bits": effect.divergences.tolist(),
        "attention_moved": effect.shifts.tolist(),
        "effect_alone": None if effects is None else effects.tolist(),
        "effect_unit": _UNITS[on],
    }
