"""Architecture: the loaded model as boxes, each with its size, its share of the work and what passes through it."""

import numpy as np
import streamlit as st

from bert_tf import plots
from bert_tf.explain import sigmoid
from bert_tf.explain.architecture import LAYER_PARTS, choice_scores, every_size, parts, passing, task_passing
from bert_tf.plots.architecture import MOST_TOKENS, MOST_UNITS, activations, sizes
from bert_tf.plots.effects import ranked_bars
from bert_tf.plots.tasks import probabilities
from ui import components, export, figures, frame, heads, inputs, lessons, snippets, state, tasks
from ui.kept import kept
from ui.words import percent, title

_OPEN, _LAYER, _VALUES = "architecture.open", "architecture.layer", "architecture.values"
_TOKEN, _UNIT = "architecture.token", "architecture.unit"
_NO_PAIR = "There is only one text. Type a text B to have the pair judged."
#: Pooling -> what the head of a fine-tuned classifier reads.
_READS = {
    "cls": "the pooled vector",
    "mean": "the mean of all tokens' last hidden states",
    "max": "the greatest value of each unit over all tokens",
    "attention": "a mean of the last hidden states, with weights that were learnt",
}
#: Box -> what can be looked at in it: name of `passing` -> label.
_INSIDE = {
    "attention": {
        "attention": "What the block adds",
        "queries": "Queries",
        "keys": "Keys",
        "values": "Values",
        "attentions": "Attention",
    },
    "attention_norm": {"attention_norm": "After add & norm"},
    "feed_forward": {"feed_forward": "What the block adds", "feed_forward_wide": "Inside, widened"},
    "feed_forward_norm": {"feed_forward_norm": "Hidden state"},
}


def page():
    opened = inputs.opened("BERT, box by box", strip=False)
    if opened is None:
        return
    shared, encoding = opened
    found = inputs.masked(shared, encoding)
    if found is None:
        return
    trace = _trace(shared, found)
    boxes = parts(shared.bert.model, trace.length, max(len(trace.masks), 1), shared.bert.task)
    names = [part.name for part in boxes]
    chosen = state.setting(_OPEN, "attention")
    chosen = chosen if chosen in names else "attention"
    layer = min(max(state.setting(_LAYER, 1), 1), shared.config.num_hidden_layers) - 1
    left, right = st.columns([4, 6], gap="large")
    with left:
        _tower(trace, boxes, chosen, layer, shared.config)
    with right:
        _detail(shared, trace, boxes, chosen, layer)
    _sizes(shared, trace, boxes)
    snippets.give(shared, trace, layer, chosen, _looked_at(chosen))


def _looked_at(box):
    """Which of the values inside a box are looked at; None for one that no layer has."""
    choices, chosen = _INSIDE.get(box, ()), state.setting(_VALUES, "")
    return chosen if chosen in choices else next(iter(choices), None)


def _trace(shared, masked):
    view = state.view()
    key = (shared.name, view.precision, view.a, view.b, masked)
    return kept("architecture", key, lambda: shared.trace(view.a, view.b, masked, hidden_states=True))


def _tower(trace, boxes, chosen, layer, config):
    layers = config.num_hidden_layers
    work = sum(part.flops for part in boxes)
    shown = [
        {
            "name": part.name,
            "title": part.title,
            "size": _parameters(part.parameters),
            "shape": _shape(part.shape),
            "share": part.flops / work,
            "work": f"{percent(part.flops / work)} of the work" if part.flops else "",
        }
        for part in boxes
    ]
    ends = [part.name for part in boxes if part.name not in ("embeddings", *LAYER_PARTS)]

    def opened(name):
        if name in {part.name for part in boxes}:
            state.set_setting(_OPEN, name, "attention")

    def moved(index):
        if 0 <= index < layers:
            state.set_setting(_LAYER, index + 1, 1)

    with inputs.heading("The model"):
        _save_boxes(trace, boxes)
    components.tower("c_tower", shown, ends, trace.tokens[:24], chosen, layer, layers, opened, moved)
    st.caption(
        f"Sizes and work of the blocks are those of all {layers} layers together, for these "
        f"{trace.length} tokens. {_sharing(config)}Press a box to look inside."
    )


def _save_boxes(trace, boxes):
    def rows():
        return [
            (part.name, part.title, _shape(part.shape), part.repeats, part.parameters, part.flops) for part in boxes
        ]

    header = ("box", "title", "gives", "repeats", "parameters", "operations")
    export.menu(
        "boxes",
        header,
        rows,
        lambda: {"model": trace.model, "tokens": trace.tokens, "boxes": [dict(zip(header, row)) for row in rows()]},
        {
            "Parameters": lambda: ranked_bars(
                [part.title for part in boxes], [part.parameters for part in boxes], "parameters"
            ),
            "Work": lambda: ranked_bars([part.title for part in boxes], [part.flops for part in boxes], "operations"),
        },
    )


def _sharing(config):
    """That layers share their weights, where they do."""
    layers, sets = config.num_hidden_layers, len(set(config.layer_groups))
    if sets == layers:
        return ""
    what = "one set of weights" if sets == 1 else f"{sets} sets of weights, neighbours the same one"
    return f"All {layers} layers share {what}: it is counted once, and the work is done in every layer. "


def _detail(shared, trace, boxes, chosen, layer):
    part = next(one for one in boxes if one.name == chosen)
    where = f", layer {layer + 1}" if part.name in _INSIDE else ""
    st.header(part.title + where, anchor=False)
    task = shared.bert.task and shared.bert.task.settings
    lesson = lessons.part(part.name, shared.config, task and task.task)
    if lesson:
        st.markdown(lesson.text)
        st.caption(lesson.source)
    st.markdown(
        f"gives **{_shape(part.shape)}** · **{_parameters(part.parameters)}** parameters{_each(part)} · "
        f"**{_operations(part.flops)}** for these {trace.length} tokens"
    )
    if part.name in _INSIDE:
        _inside(shared, trace, part.name, layer)
    elif part.name == "embeddings":
        _values(trace.hidden_states[0], trace.tokens, "The normalised sum")
    elif part.name == "pooler" and trace.pooled is not None:
        _values(trace.pooled[None], ["[CLS]"], "The pooled vector")
    elif part.name == "mlm":
        _masked_words(shared, trace)
    elif part.name in ("nsp", "sop"):
        _pair(trace)
    elif part.name == "replaced":
        with st.container(horizontal=True, horizontal_alignment="right"):
            heads.save_replaced(trace)
        heads.replaced_tokens("c_architecture_replaced", trace)
    elif part.name == "task":
        _task(shared, trace, task)
    if lesson:
        lessons.links(lesson.pages)


def _each(part):
    """How many of a part's parameters one layer has."""
    if part.repeats == 1:
        return ""
    one = _parameters(part.parameters // part.sets)
    if part.sets == part.repeats:
        return f", {one} a layer"
    if part.sets == 1:
        return f", the same in all {part.repeats} layers"
    return f", {one} in each of {part.sets} sets for {part.repeats} layers"


def _inside(shared, trace, name, layer):
    choices = _INSIDE[name]
    chosen = next(iter(choices))
    if len(choices) > 1:
        chosen = st.segmented_control(
            "Look at",
            list(choices),
            format_func=choices.get,
            **state.bound_setting(_VALUES, f"w_architecture_{name}", chosen, choices),
        )
        chosen = chosen or next(iter(choices))
    values = shared.run(passing, trace, layer)[chosen]
    if chosen == "attentions":
        strongest = values.mean(axis=0)
        first, _ = _window(trace.length, 1)
        selection = plots.select(trace).window(first, MOST_TOKENS)
        with st.container(horizontal=True, horizontal_alignment="right"):
            export.menu(
                "mean-attention",
                ("looks", *trace.tokens),
                lambda: ((token, *line) for token, line in zip(trace.tokens, strongest)),
                lambda: {"model": trace.model, "layer": layer + 1, "tokens": trace.tokens, "weights": strongest},
                lambda: plots.heatmap(trace, strongest, plots.select(trace)),
                lambda: {"tokens": np.array(trace.tokens), "weights": values},
            )
        figures.show(
"Mean attention of the layer",
            plots.heatmap(trace, strongest, selection, dark=frame.is_dark(), most=MOST_TOKENS),
            config=export.plot_config("attention"),
            key="w_architecture_maps",
        )
        st.caption("The mean of the layer's heads; each head by itself is on the Attention pages.")
        return
    if values.ndim == 3:
        heads, tokens, size = values.shape
        st.caption(f"{heads} heads of {size} units, head 1 first.")
        values = values.transpose(1, 0, 2).reshape(tokens, heads * size)
    _values(values, trace.tokens, choices[chosen])


def _window(tokens, units):
    """The first token and unit that are drawn, from 0; sliders choose them where there are more than fit."""
    long = [
        (name, label, 1 + total - most)
        for name, label, total, most in (
            (_TOKEN, f"{MOST_TOKENS} tokens from", tokens, MOST_TOKENS),
            (_UNIT, f"{MOST_UNITS} units from", units, MOST_UNITS),
        )
        if total > most
    ]
    first = {}
    for column, (name, label, last) in zip(st.columns(len(long) or 1), long):
        key = f"w_{name.replace('.', '_')}"
        first[name] = column.slider(label, 1, last, **state.bound_setting(name, key, 1, range(1, last + 1))) - 1
    return first.get(_TOKEN, 0), first.get(_UNIT, 0)


def _values(values, tokens, label, units=None):
    values = np.asarray(values)
    token, unit = _window(*values.shape)

    def figure(dark=False):
        return activations(values, tokens, dark, token, unit, units)

    names = units or tuple(map(str, range(1, values.shape[1] + 1)))
    with st.container(horizontal=True, horizontal_alignment="right"):
        export.menu(
            "values",
            ("token", *names),
            lambda: ((token, *line) for token, line in zip(tokens, values)),
            lambda: {"of": label, "tokens": tokens, "units": names, "values": values},
            figure,
            lambda: {"tokens": np.array(tokens), "units": np.array(names), "values": values},
        )
    figures.show(
        f"Values: {label}",
        figure(frame.is_dark()),
        config=export.plot_config("values"),
        key="w_architecture_values",
    )
    shown = [
        f"{what} {first + 1:,} to {first + most:,} of {total:,}"
        for what, first, total, most in zip(
            ("units", "tokens"), (unit, token), values.shape[::-1], (MOST_UNITS, MOST_TOKENS)
        )
        if total > most
    ]
    if units is not None:
        st.caption(f"{label}, before any softmax{': ' if shown else ''}{' and '.join(shown)}.")
        return
    st.caption(
        f"{label}: {' and '.join(shown) or 'all units'}. Mean length of the vectors "
        f"{np.linalg.norm(values, axis=1).mean():.2f}; a unit has no meaning by itself."
    )


def _masked_words(shared, trace):
    from bert_tf.explain import fill_mask
    from ui.cards import cards

    if not trace.masks:
        st.info("Nothing is hidden. Mask a word on the Predict page.", icon=":material/touch_app:")
        return
    answers = fill_mask(trace, shared.tokenizer, 5)
    with st.container(horizontal=True, horizontal_alignment="right"):
        heads.save_predictions(trace, answers)
    components.bars("c_architecture_bars", cards(answers))


def _pair(trace):
    if trace.nsp is None and trace.sop is None:
        st.info(_NO_PAIR, icon=":material/keyboard:")
        return
    with st.container(horizontal=True, horizontal_alignment="right"):
        heads.save_verdict(trace)
    heads.pair_verdict("c_architecture_gauge", trace)


def _task(shared, trace, settings):
    """What the head of a fine-tuned model gives for this sentence."""
    if settings.task == "choose":
        _choices(shared, settings)
        return
    found = shared.run(task_passing, trace)
    if settings.task == "tag":
        _values(found["logits"], trace.tokens, "Logits of the labels", settings.labels)
    elif settings.task == "answer":
        ends = np.stack([found["start_logits"], found["end_logits"]], axis=1)
        _values(ends, trace.tokens, "Logits of the answer's ends", ("begins", "ends"))
    elif settings.regression:
        st.metric("Value", f"{found['logits'][0]:.3f}")
        st.caption(f"Out of {_READS[settings.pooling]}.")
    else:
        _numbers("class", settings.labels, found["logits"], settings.multi_label)
        st.caption(f"Out of {_READS[settings.pooling]}.")


def _choices(shared, settings):
    view = state.view()
    choices = tasks.record(settings, view.a, view.b)["choices"]
    if len(choices) < 2:
        st.info("Type two or more endings as text B, one a line.", icon=":material/keyboard:")
        return
    _numbers("choice", choices, shared.run(choice_scores, view.a, choices))
    st.caption("Each choice is read with text A in a pass of its own; the boxes show the text as one pass.")


def _numbers(what, names, logits, alone=False):
    """Logits and the probabilities that a softmax makes of them, or a sigmoid of each (``alone``)."""
    logits = np.asarray(logits, np.float64)
    raised = np.exp(logits - logits.max())
    shares = sigmoid(logits) if alone else raised / raised.sum()
    with st.container(horizontal=True, horizontal_alignment="right"):
        export.menu(
            "logits",
            (what, "logit", "probability"),
            lambda: zip(names, logits, shares),
            lambda: {what: list(names), "logits": logits, "probabilities": shares},
            lambda: probabilities(list(names), shares),
        )
    st.dataframe(
        {what: list(names), "logit": logits, "probability": shares},
        hide_index=True,
        key="w_architecture_numbers",
        column_config={
            what: st.column_config.TextColumn(what.capitalize()),
            "logit": st.column_config.NumberColumn("Logit", format="%.3f"),
            "probability": st.column_config.ProgressColumn("Probability", min_value=0, max_value=1, format="%.3f"),
        },
    )


def _sizes(shared, trace, boxes):
    heading = inputs.heading("Beside the other sizes")
    config, masks = shared.config, max(len(trace.masks), 1)
    rows = [(one.name, one.config, one.parameters, one.flops) for one in every_size(config, trace.length, masks)]
    rows.append((f"{title(shared.name)} (loaded)", config, *_loaded(boxes)))
    plain = [
        (name, {part: n for part, n in counts.items() if part != "total"}) for name, _, counts, _ in rows
    ]
    table = _size_table(rows)
    with heading:
        export.menu(
            "sizes",
            tuple(table),
            lambda: zip(*table.values()),
            lambda: {"tokens": trace.length, "masks": masks, "sizes": table},
            lambda: sizes(plain),
        )
    figures.show(
        "Parameters of every size",
        sizes(plain, frame.is_dark()),
        config=export.plot_config("sizes"),
        key="w_architecture_sizes",
    )
    st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        key="w_architecture_table",
        column_config={
            "Size": st.column_config.TextColumn(pinned=True, width=150),
            "FF": st.column_config.NumberColumn(help="Inner size of the feed-forward blocks."),
            "E": st.column_config.NumberColumn(help="Size of the embeddings, before they are widened."),
            **{name: st.column_config.NumberColumn(format="localized") for name in _COUNTED},
            **{name: st.column_config.NumberColumn(format="%.1f", help=_SHARE) for name in _SPENT},
            "GFLOP": st.column_config.NumberColumn(format="%.3g", help="Operations of the matrix products, in 10⁹."),
        },
    )
    st.caption(
        f"{config.member.title}'s sizes with this model's vocabulary of {config.vocab_size:,}: layers × hidden size × "
        f"heads, parameters by part, and how the work on these {trace.length} tokens"
        f"{f' with {masks} masks' if masks > 1 else ''} is shared out."
    )


_COUNTED = ("Parameters", "Embeddings", "Encoder", "Heads")
_SPENT = ("Attention %", "FF %", "Other %")
_SHARE = "Share of the work, the operations of one pass. Other: the heads, and what widens narrow embeddings."


def _loaded(boxes):
    """Parameters and operations of the loaded model by part, as the sizes have theirs."""
    ends = [part for part in boxes if part.name not in ("embeddings", *LAYER_PARTS)]
    inside = [part for part in boxes if part.name in LAYER_PARTS]
    counts = {
        "embeddings": boxes[0].parameters,
        "encoder": sum(part.parameters for part in inside),
        **{part.name: part.parameters for part in ends},
    }
    flops = {part.name: part.flops for part in (boxes[0], *inside, *ends)}
    return {**counts, "total": sum(counts.values())}, flops


def _size_table(rows):
    """Columns of the table of sizes."""
    table, narrow = [], any(config.projects for _, config, _, _ in rows)
    for name, config, counts, flops in rows:
        work = sum(flops.values())
        attention, wide = flops["attention"], flops["feed_forward"]
        row = {
            "Size": name,
            "L × H × A": f"{config.num_hidden_layers} × {config.hidden_size:,} × {config.num_attention_heads}",
            "FF": config.intermediate_size,
            **({"E": config.embedding_width} if narrow else {}),
            "Parameters": counts["total"],
            "Embeddings": counts["embeddings"],
            "Encoder": counts["encoder"],
            "Heads": counts["total"] - counts["embeddings"] - counts["encoder"],
        }
        shares = zip(_SPENT, (attention, wide, work - attention - wide))
        table.append({**row, **{title: 100 * spent / work for title, spent in shares}, "GFLOP": work / 1e9})
    return {column: [row[column] for row in table] for column in table[0]}


def _shape(shape):
    return " × ".join(f"{letter} {number:,}" for letter, number in shape)


def _parameters(number):
    if number >= 1e6:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.1f} k" if number >= 1e3 else str(number)


def _operations(flops):
    if flops >= 1e9:
        return f"{flops / 1e9:.2f} GFLOP"
    if flops >= 1e6:
        return f"{flops / 1e6:.1f} MFLOP"
    return f"{flops:,} FLOP" if flops else "next to none"
