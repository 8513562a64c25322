"""The Python code for what the page layer similarity shows."""

from ui.widgets.snippet_parts import loading_two, rows_of, script

_CKA = """\
readers = [partial(model.trace, attentions=False) for model in (bert, second)]
texts = [(row.text_a, row.text_b) for row in rows[:{most}]]
ones, others = traces_of(readers, texts, enough={words})  # no more texts than give so many words
print(layer_similarity(ones, others{measure}).round(3))  # row: a state of the one, column: of the other"""


def snippet(view, names, traced, file=None, most=0, words=0, measure="cka"):
    """How alike the layers of two models are.

    Args:
        names: of the models. traced: (text A, text B or None) of the page as each of them reads it.
        file: ``ChosenFile``, of which the first ``most`` rows are read instead, until there are
            ``words`` words.
        measure: as `layer_similarity` takes it.
    """
    load, own = loading_two(view, names), "" if measure == "cka" else f", measure={measure!r}"
    if file is None:
        one, two = (", ".join(repr(text) for text in texts if text is not None) for texts in traced)
        call = f"layer_similarity([bert.trace({one})], [second.trace({two})]{own})"
        imports = ("from bert_tf.explain import layer_similarity",)
        return script(imports, load, f"print({call}.round(3))  # row: a state of the one, column: of the other")
    imports, read = rows_of(file)
    imports = [
        *imports,
        "from bert_tf.explain import layer_similarity",
        "from functools import partial",
        "from bert_tf.explain.representations.layer_similarity import traces_of",
    ]
    return script(imports, f"{load}\n{read}", _CKA.format(most=most, words=words, measure=own))
