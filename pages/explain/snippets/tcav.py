"""The lines of Python that do what the page tcav shows."""

from ui.samples import concepts as samples
from ui.widgets.snippet_parts import listed, loading, rows_of, sample_lines, script

_CONCEPTS = """\
{sentences}
found = concept_test(bert, rows, concept, others, {of!r}{answer}{hide})
print(found.scores.mean(axis=1).round(3))  # after each layer: the share of rows that rise along the concept's vectors
print(found.random_scores.mean(axis=1).round(3), found.is_significant)  # along random directions; whether it differs
print(found.accuracies.mean(axis=1).round(3))  # of the classifiers, on sentences held out"""


def snippet(view, shared, file, name, concept, others, of, answer, hide, label):
    """A concept tested on the rows of a file.

    Args:
        file: ``ui.widgets.file_input.Chosen``. name: of the ready concept, or None. concept, others: the sentences.
        of, answer, hide: as `concept_test` takes them. label: that of the rows that are asked about, or "" for all.
    """
    imports, read = rows_of(file)
    labels = ["from bert_tf.explain.datasets.text_rows import labelled"] if label else []
    read += f"\nrows = labelled(rows, {label!r})" if label else ""
    ready = [None if name is None else name, samples.OTHERS if others == samples.sentences(samples.OTHERS) else None]
    made = [
        f"{variable} = {_sentences(one, texts)}"
        for variable, one, texts in zip(("concept", "others"), ready, (concept, others))
    ]
    path = [] if file.typed and not any(ready) else ["import pathlib"]
    body = _CONCEPTS.format(
        sentences="\n".join(made),
        of=of,
        answer="" if answer is None else f", {answer!r}",
        hide="" if hide == "given" else f", hide={hide!r}",
    )
    head = [*path, *labels, f"from bert_tf.explain import {', '.join([*imports, 'concept_test'])}"]
    return script(head, f"{loading(view, shared.name)}\n{read}", body)


def _sentences(name, texts):
    return listed(texts) if name is None else sample_lines(name)
