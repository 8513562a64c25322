"""The Python code for what the page tcav shows."""

from ui.samples import concepts as samples
from ui.widgets.snippet_parts import listed, loading, rows_of, sample_lines, script

_CONCEPTS = """\
{sentences}
result = {call}
print(result.scores.mean(axis=1).round(3))  # after each layer: the share of rows that rise along the concept's vectors
print(result.random_scores.mean(axis=1).round(3), result.is_significant)  # along random directions; whether it differs
print(result.accuracies.mean(axis=1).round(3))  # of the classifiers, on sentences held out"""


def snippet(view, shared, file, name, call, label):
    """A concept tested on the rows of a file.

    Args:
        file: ``ChosenFile``. name: of the ready concept, or None. call: ``Call`` of `concept_test`.
        label: the label of the rows, or "" for all rows.
    """
    imports, read = rows_of(file)
    concept, others = call["concept"], call["others"]
    ready = [name, samples.OTHERS if others == samples.sentences(samples.OTHERS) else None]
    if label:
        imports = [*imports, "from bert_tf.explain.datasets.text_rows import labelled"]
        read += f"\nrows = labelled(rows, {label!r})"
    sentences = "\n".join(
        f"{variable} = {_sentences(one, texts)}"
        for variable, one, texts in zip(("concept", "others"), ready, (concept, others))
    )
    written = {"concept": "concept", "others": "others"}
    body = _CONCEPTS.format(sentences=sentences, call=call.python("bert", "rows", **written))
    return script([*imports, *call.imports(*written)], f"{loading(view, shared.name)}\n{read}", body)


def _sentences(name, texts):
    return listed(texts) if name is None else sample_lines(name)
