"""The Python code for what the page replaced token detection shows."""

from bert_tf.analyses import Call
from bert_tf.explain import replace_and_detect
from ui.widgets.snippet_parts import loading, script

_GAME = """\
game = {call}
for token, stood, replaced, score in zip(game.tokens, game.original_tokens, game.replaced, game.scores):
    print(token, stood if replaced else "", score.round(3))  # what it stands for, the judge's probability
print(game.true_positives, game.false_positives)"""


def snippet(view, discriminator, generator, chosen, share, seed):
    """ELECTRA's game; names of the two models. chosen: positions, or () for a share (in percent) by chance."""
    load = f"{loading(view, generator, 'generator')}\n{loading(view, discriminator, 'discriminator')}"
    options = {"mask": chosen} if chosen else {"share": share / 100}
    call = Call.of(replace_and_detect, **options, seed=seed)
    body = _GAME.format(call=call.python("generator", "discriminator", repr(view.a)))
    return script(call.imports(), load, body)
