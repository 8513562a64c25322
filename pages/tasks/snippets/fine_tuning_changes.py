"""The Python code for what the page fine tuning changes shows."""

from ui.session.task_models import record
from ui.widgets import task_predictions
from ui.widgets.snippet_parts import asked, loading, reading, script

_FINETUNED = """\
result = {call}
print(result.divergences.round(3))  # bits, one row a layer, one column a head"""
_HEAD = """\
for row, token in enumerate(trace.tokens):  # the head that is open, before and after
    one, two = (part.attentions[{layer}, {head}, row] for part in (trace, other))
    print(token, trace.tokens[one.argmax()], one.max().round(3), trace.tokens[two.argmax()], two.max().round(3))"""
_BOTH = """\
for model in (before, after):
    asked = model.trace({asked})
{says}"""
_MASKS = """\
    for mask in model.fill_mask(asked, top_k={top_k}):
        print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions])"""


def snippet(view, pair, traces, call, hidden=(), place=None):
    """A model before and after fine-tuning.

    Args:
        pair: ``SharedModel``s. traces: theirs, nothing hidden. call: ``Call`` of `attention_divergence`.
        hidden: positions of the words that are hidden.
        place: (layer, head) of the head that is open.
    """
    before, after = (shared.name for shared in pair)
    load = f"{loading(view, before, 'before')}\n{loading(view, after, 'after')}"
    read = f"{reading(traces[0], bert='before')}\n{reading(traces[1], 'other', 'after')}"
    divergence = _FINETUNED.format(call=call.python("trace", "other"))
    head = _HEAD.format(layer=place[0], head=place[1]) if place else ""
    parts = _own(view, pair[1]), _earlier(view, pair, traces, hidden)
    return script(call.imports(), f"{load}\n{read}", divergence, head, *parts)


def _own(view, after):
    """What the fine-tuned model says."""
    settings = after.bert.task.settings
    if task_predictions.problem(settings, view.a, view.b):
        return ""
    return f"(answer,) = after.task.predict([{record(settings, view.a, view.b)!r}])\nprint(answer)"


def _earlier(view, pair, traces, hidden):
    """What the heads of pre-training say, where both have them."""
    both = pair[0].bert.heads & pair[1].bert.heads
    says = [_MASKS.format(top_k=view.top_k)] if "mlm" in both and (hidden or traces[1].masks) else []
    if traces[1].text_b is not None:
        says += [f"    print(asked.{head})" for head in ("nsp", "sop") if head in both]
    mask = f", mask={list(hidden)}" if hidden else ""
    return _BOTH.format(asked=f"{asked(traces[1])}{mask}", says="\n".join(says)) if says else ""
