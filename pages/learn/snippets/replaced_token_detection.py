"""The lines of Python that do what the page replaced token detection shows."""

from ui.widgets.snippet_parts import loading, script

_GAME = """\
game = replace_and_detect(generator, discriminator, {text!r}{share}{mask}, seed={seed})
for token, stood, replaced, score in zip(game.tokens, game.original_tokens, game.replaced, game.scores):
    print(token, stood if replaced else "", score.round(3))  # what it stands for, the judge's probability
print(game.true_positives, game.false_positives)"""


def snippet(view, discriminator, generator, chosen, share, seed):
    """ELECTRA's game; names of the two models. chosen: positions, or () for a share (in percent) by chance."""
    load = f"{loading(view, generator, 'generator')}\n{loading(view, discriminator, 'discriminator')}"
    by_chance = "" if chosen else f", share={share / 100}"
    mask = f", mask={list(chosen)}" if chosen else ""
    body = _GAME.format(text=view.a, share=by_chance, mask=mask, seed=seed)
    return script(("from bert_tf.explain import replace_and_detect",), load, body)
