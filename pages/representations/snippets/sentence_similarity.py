"""The Python code for what the page sentence similarity shows."""

from ui.widgets.snippet_parts import listed, loading, rows_of, script

_MATRIX = """\
result = {call}
print(result.cosines.round(3))"""
_SEARCH = """\
texts = [row.text_a for row in rows]
result = {call}
print(result.cosines.round(3))
for sentence, nearest in zip(sentences, result.nearest):
    print(sentence, [(one.text, round(one.similarity, 3)) for one in nearest])"""


def snippet(view, shared, sentences, call, file):
    """The cosines of sentences, and the texts of a file that are found.

    Args:
        sentences: tuple of str. call: ``Call`` of `sentence_similarity`. file: ``ChosenFile`` that is searched, or
            None.
    """
    parts = [f"{loading(view, shared.name)}\nsentences = {listed(sentences)}"]
    if file is None:
        return script(call.imports(), *parts, _MATRIX.format(call=call.python("bert", "sentences")))
    imports, read = rows_of(file)
    search = _SEARCH.format(call=call.python("bert", "sentences", "texts"))
    return script([*imports, *call.imports()], *parts, read, search)
