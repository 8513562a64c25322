"""The Python code for what the page sentence similarity shows."""

from ui.widgets.snippet_parts import listed, loading, rows_of, script

_MATRIX = """\
result = sentence_similarity(bert, sentences, pooling={pooling!r})
print(result.cosines.round(3))"""
_SEARCH = """\
texts = [row.text_a for row in rows]
result = sentence_similarity(bert, sentences, input=texts, pooling={pooling!r}, top_k={top_k})
print(result.cosines.round(3))
for sentence, found in zip(sentences, result.nearest):
    print(sentence, [(one.text, round(one.similarity, 3)) for one in found])"""


def snippet(view, shared, sentences, pooling, file, top_k):
    """The cosines of sentences, and the texts of a file that are found.

    Args:
        sentences: tuple of str. pooling: how the vectors are computed. file: ``ChosenFile`` that is searched, or None.
        top_k: the most texts that are found for a sentence.
    """
    imports = ["from bert_tf.explain import sentence_similarity"]
    parts = [f"{loading(view, shared.name)}\nsentences = {listed(sentences)}"]
    if file is None:
        return script(imports, *parts, _MATRIX.format(pooling=pooling))
    more, read = rows_of(file)
    return script([*imports, *more], *parts, read, _SEARCH.format(pooling=pooling, top_k=top_k))
