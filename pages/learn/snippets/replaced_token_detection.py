"""The Python code for what the page replaced token detection shows."""

from ui.widgets.snippet_parts import loading, script

_DETECTION = """\
result = {call}
for token, stood, replaced, score in zip(result.tokens, result.original_tokens, result.replaced, result.scores):
    print(token, stood if replaced else "", score.round(3))  # what it stands for, the probability by the discriminator
print(result.true_positives, result.false_positives)"""


def snippet(view, discriminator, generator, call):
    """Replaced-token detection; the names of the two models, and the ``Call`` of `replace_and_detect`."""
    load = f"{loading(view, generator, 'generator')}\n{loading(view, discriminator, 'discriminator')}"
    body = _DETECTION.format(call=call.python("generator", "discriminator", repr(view.a)))
    return script(call.imports(), load, body)
