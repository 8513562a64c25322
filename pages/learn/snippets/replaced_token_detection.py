"""The Python code for what the page replaced token detection shows."""

from ui.widgets.snippet_parts import loading, script

_GAME = """\
game = {call}
for token, stood, replaced, score in zip(game.tokens, game.original_tokens, game.replaced, game.scores):
    print(token, stood if replaced else "", score.round(3))  # what it stands for, the judge's probability
print(game.true_positives, game.false_positives)"""


def snippet(view, discriminator, generator, call):
    """ELECTRA's game; names of the two models, and the ``Call`` of `replace_and_detect`."""
    load = f"{loading(view, generator, 'generator')}\n{loading(view, discriminator, 'discriminator')}"
    body = _GAME.format(call=call.python("generator", "discriminator", repr(view.a)))
    return script(call.imports(), load, body)
