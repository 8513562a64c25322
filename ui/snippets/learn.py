"""The lines of the pages to learn from."""

from ui.session.task_models import record
from ui.snippets.parts import about, loading, script

_PARTS = """\
for part in parts(bert.model, trace.length, masks={masks}{task}):
    print(part.title, dict(part.shape), part.parameters, part.flops)
for size in all_sizes(bert.config, trace.length, masks={masks}):  # of its kind
    print(size.name, size.parameters["total"], sum(size.flops.values()))
    print(*(part for part in size.parts if part.name == {box!r}))  # the open box"""
_PASSING = """\
values = passing(bert, trace, layer={layer})[{name!r}]  # the layer counted from 0
print(values.shape, values.round(3))"""
_BOXES = {
    "embeddings": "print(trace.hidden_states[0].round(3))  # the normalised sum",
    "pooler": "print(trace.pooled.round(3))",
    "mlm": "for mask in bert.fill_mask(trace):\n    print(mask.position, [one.token for one in mask.predictions])",
    "nsp": "print(trace.nsp)",
    "sop": "print(trace.sop)",
    "replaced": "print(trace.replaced.round(3))",
    "task": "found = task_head_activations(bert, trace)\nprint(found)",
}


def architecture(view, shared, trace, layer, box, values=None):
    """The boxes of the model, and what passes through the open one.

    Args:
        layer: from 0. box: its name. values: which of the layer's values are looked at; None for a box that no
            layer has.
    """
    names, opened = ["all_sizes", "parts"], _BOXES.get(box, "") if _has(trace, box) else ""
    task = shared.bert.task and shared.bert.task.settings
    if values:
        names, opened = [*names, "passing"], _PASSING.format(layer=layer, name=values)
    elif box == "task":
        names.append("choice_scores" if task.task == "choose" else "task_head_activations")
        if task.task == "choose":
            asked = record(task, view.a, view.b)
            opened = f"found = choice_scores(bert, {asked['context']!r}, {asked['choices']!r})\nprint(found)"
    body = _PARTS.format(box=box, masks=max(len(trace.masks), 1), task=", task=bert.task" if task else "")
    imports = (f"from bert_tf.explain.models.architecture import {', '.join(names)}",)
    return about(view, shared, trace, imports, body, opened)


def _has(trace, box):
    there = {"pooler": trace.pooled, "mlm": trace.masks or None, "nsp": trace.nsp, "sop": trace.sop}
    return {**there, "replaced": trace.replaced}.get(box, trace) is not None


_READERS = """\
for bert in models:
    reading = predict_span(bert, text, {start}, {end}, top_k={top_k})
    print(bert.name, reading.reads, [(one.token, round(one.probability, 3)) for one in reading.answer.predictions])
    print(reading.answer.original_probability, reading.visible_spans)"""


def oneway(view, readings, chosen, text, start, end):
    """What each reader expects in the place of a part of a text.

    Args:
        readings: names of the readers, in 32 bits; chosen: name of the sidebar's model, as the view computes, or "".
        text, start, end: as `predict_span` takes them.
    """
    imports = ("from bert_tf.explain import predict_span",)
    if chosen and view.precision != "float32":
        line = f"models = [*map(bert_tf.load, {readings}), bert_tf.load({chosen!r}, precision={view.precision!r})]"
    else:
        line = f"models = map(bert_tf.load, {[*readings, *([chosen] if chosen else [])]})"
    return script(imports, f"text = {text!r}\n{line}", _READERS.format(start=start, end=end, top_k=view.top_k))


_GAME = """\
game = play(generator, discriminator, {text!r}{share}{mask}, seed={seed})
for token, stood, replaced, score in zip(game.tokens, game.original_tokens, game.replaced, game.scores):
    print(token, stood if replaced else "", score.round(3))  # what it stands for, the judge's probability
print(game.true_positives, game.false_positives)"""


def electra(view, discriminator, generator, chosen, share, seed):
    """ELECTRA's game; names of the two models. chosen: positions, or () for a share (in percent) by chance."""
    load = f"{loading(view, generator, 'generator')}\n{loading(view, discriminator, 'discriminator')}"
    by_chance = "" if chosen else f", share={share / 100}"
    mask = f", mask={list(chosen)}" if chosen else ""
    body = _GAME.format(text=view.a, share=by_chance, mask=mask, seed=seed)
    return script(("from bert_tf.explain import play",), load, body)


_FAMILY = """\
rows = architecture_rows({tokens})
for row in rows:
    print(row.name, row.config.num_hidden_layers, row.config.hidden_size, row.parameters, row.flops / 1e9)"""
_SPEED = """\
for row, seconds in zip(rows, measure_speed(rows)):
    print(row.name, seconds and round(1000 * seconds))  # milliseconds; None: too large to be timed"""


def family(view, tokens, timed=False):
    """Every size of every member; timed: whether the page times them."""
    imports = (
        f"from bert_tf.explain.models.architecture_table import architecture_rows{', measure_speed' if timed else ''}",
    )
    return script(imports, _FAMILY.format(tokens=tokens), _SPEED if timed else "")
