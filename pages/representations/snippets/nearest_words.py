"""The Python code for what the page nearest words shows."""

from ui.widgets.snippet_parts import about, loading, rows_of, span

_WORDS = """\
result = {call}
for row, position in enumerate(result.positions):
    # The nearest word but itself: {vectors}.
    print(trace.tokens[position], [result.nearest_other(row, column).token for column in range(len(result.vectors))])"""
_OPEN = """\
near = result.nearest[{row}][{column}]
print(trace.tokens[{position}], [(one.token, round(one.similarity, 3)) for one in near])"""
_CONTEXTS = """\
result = {call}
{labelled}(near,) = result.nearest
for one in near:  # the contexts in the file nearest to {what}
    print(one.row.number, round(one.similarity, 3), "{{}}[{{}}]{{}}".format(*one.parts))"""
_ATTENDED = """\
looked = [one.most_attended for one in near]
for one in looked:  # what is attended to most from there{mean}
    print(one.token, round(one.share, 3), f"{{one.offset:+d}}")"""
_LABELS = """\
tags, relations = [one.part_of_speech for one in near], [one.relation for one in near]
print(tags, relations)"""
_LABELS_THERE = """\
tags_there, relations_there = [one.part_of_speech for one in looked], [one.relation for one in looked]
print(tags_there, relations_there)"""


def snippet(view, shared, trace, call, cell=None, file=None, tagger=None, parsed=False):
    """The words of the vocabulary, or the contexts of a file, that are nearest.

    Args:
        call: ``Call`` of `nearest_words`, or of `nearest` where a file is searched.
        cell: the open row and column of the words, or None.
        file: ``ChosenFile`` that is searched, or None.
        tagger: name of the model that labels the words of the contexts, or None. parsed: whether the file has labels.
    """
    if file is not None:
        return _contexts(view, shared, trace, call, file, tagger, parsed)
    row, column = cell
    has_states = trace.hidden_states.shape[-1] == shared.config.embedding_width
    words = _WORDS.format(
        call=call.python("bert", "trace", positions=span(call["positions"])),
        vectors="by the static vector" + ", then by every hidden state, the embeddings first" * has_states,
    )
    open_cell = _OPEN.format(row=row, column=column, position=call["positions"][row])
    return about(view, shared, trace, call.imports(), words, open_cell)


def _contexts(view, shared, trace, call, file, tagger, parsed):
    """The contexts of a file; the arguments as those of `snippet`."""
    imports, read = rows_of(file)
    imports += call.imports()
    heads = call["heads"] or ()
    what = f"the token's vector after layer {call['layer']}"
    if heads:
        numbers = ", ".join(str(head + 1) for head in heads)
        plural = len(heads) > 1
        what = f"what head{'s' * plural} {numbers} of layer {call['layer'] + 1} put{'s' * (not plural)} together"
    labelled = ""
    if tagger is not None:
        labelled = f"{loading(view, tagger, 'tagger')}\nresult = label_contexts(tagger, result)\n"
        imports.append("from bert_tf.explain import label_contexts")
    parts = [_CONTEXTS.format(call=call.python("bert", "trace", "rows"), labelled=labelled, what=what)]
    if heads:
        parts.append(_ATTENDED.format(mean=", by the mean of their maps" * (len(heads) > 1)))
    if tagger is not None or parsed:
        parts += [_LABELS, *[_LABELS_THERE] * bool(heads)]
    if len(parts) > 1:
        parts.append("print(count_contexts(near))  # how often each label and distance occurs")
        imports.append("from bert_tf.explain import count_contexts")
    return about(view, shared, trace, imports, read, "\n".join(parts))
