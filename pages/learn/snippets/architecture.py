"""The Python code for what the page architecture shows."""

from ui.session.task_models import record
from ui.widgets.snippet_parts import about
from ui.widgets.task_predictions import problem

_PARTS = """\
for part in parts_of(bert.config, bert.heads, trace.length, masks={masks}{task}):
    print(part.title, dict(part.shape), part.parameters, part.flops)
for size in all_sizes(bert.config, trace.length, masks={masks}):  # of its kind
    print(size.name, size.parameters["total"], sum(size.flops.values()))
    print(*(part for part in size.parts if part.name == {box!r}))  # the open box"""
_ACTIVATIONS = """\
values = layer_activations(bert, trace, layer={layer})[{name!r}]  # the layer counted from 0
print(values.shape, values.round(3))"""
_BOXES = {
    "embeddings": "print(trace.hidden_states[0].round(3))  # the normalised sum",
    "pooler": "print(trace.pooled.round(3))",
    "mlm": "for mask in bert.fill_mask(trace):\n    print(mask.position, [one.token for one in mask.predictions])",
    "nsp": "print(trace.nsp)",
    "sop": "print(trace.sop)",
    "replaced": "print(trace.replaced.round(3))",
    "task": "result = task_head_activations(bert, trace)\nprint(result)",
}


def snippet(view, shared, trace, layer, box, values=None):
    """The boxes of the model, and what passes through the open one.

    Args:
        layer: from 0. box: its name. values: which of the layer's values are looked at; None for a box that no
            layer has.
    """
    names, box_lines = ["all_sizes", "parts_of"], _BOXES.get(box, "") if _has(trace, box) else ""
    task = shared.bert.task and shared.bert.task.settings
    if values:
        names, box_lines = [*names, "layer_activations"], _ACTIVATIONS.format(layer=layer, name=values)
    elif box == "task" and task.task != "choose":
        names.append("task_head_activations")
    elif box == "task":
        box_lines, example = "", record(task, view.a, view.b)
        if not problem(task, view.a, view.b):
            names.append("choice_scores")
            box_lines = f"result = choice_scores(bert, {example['context']!r}, {example['choices']!r})\nprint(result)"
    body = _PARTS.format(box=box, masks=max(len(trace.masks), 1), task=", task=bert.task" if task else "")
    imports = (f"from bert_tf.explain.models.architecture import {', '.join(names)}",)
    return about(view, shared, trace, imports, body, box_lines)


def _has(trace, box):
    there = {"pooler": trace.pooled, "mlm": trace.masks or None, "nsp": trace.nsp, "sop": trace.sop}
    return {**there, "replaced": trace.replaced}.get(box, trace) is not None
