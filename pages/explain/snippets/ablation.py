"""The Python code for what the page ablation shows."""

from bert_tf.explain.attribution.target import classifies
from ui.widgets.snippet_parts import about

_ABLATE = """\
effect = {call}
{says}
print(effect.attention_shifts.round(3))  # share of its attention that each head turns elsewhere; row a layer"""
_SAYS_MASKS = """\
for before, after in zip(effect.before, effect.after):
    for one in (before, after):
        print(one.position, [(prediction.token, round(prediction.probability, 3)) for prediction in one.predictions])"""
_SWEEP = """\
result = {call}
lost = result.score_drop(trace, {on!r})  # what the answer loses without each
for index in np.argsort(-np.abs(lost))[:15]:
    print(result.ablations[index], lost[index].round(3))"""
_KINDS = {
    "heads": (("every_head",), "every_head(bert.config)"),
    "blocks": (("every_feed_forward", "every_layer"), "every_feed_forward(bert.config) + every_layer(bert.config)"),
    "tokens": (("every_token",), "every_token(trace)"),
}


def snippet(view, shared, trace, call, sweep_call, on=None, kind="heads"):
    """The parts that are switched off, and the sweep where the page shows it.

    Args:
        call: ``Call`` of `ablate`. sweep_call: ``Call`` of `sweep`.
        on: the answer that effects are measured on: "class", "masks" or "next", or the position of a scored token; None
            where no sweep is shown.
        kind: the parts in the list, a key of ``_KINDS``.
    """
    call = call.replace(top_k=view.top_k)
    imports = call.imports()
    bodies = [_ABLATE.format(call=call.python("bert", "trace"), says=_answer_lines(shared, trace))]
    if on:
        names, parts = _KINDS[kind]
        imports += ["import numpy as np", *sweep_call.imports(), f"from bert_tf.explain import {', '.join(names)}"]
        bodies.append(_SWEEP.format(call=sweep_call.python("bert", "trace", parts), on=on))
    return about(view, shared, trace, imports, *bodies)


def _answer_lines(shared, trace):
    lines = [_SAYS_MASKS] if trace.masks and "mlm" in shared.bert.heads else []
    answers = [head for head in ("nsp", "sop") if getattr(trace, head) is not None]
    answers += ["replaced"] if trace.replaced is not None else []
    answers += ["classes"] if classifies(shared.bert, trace) else []
    return "\n".join([*lines, *(f"print(effect.{answer}_before, effect.{answer}_after)" for answer in answers)])
