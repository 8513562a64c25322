"""The lines that read a file of texts, and those of the page Data."""

from ui.samples import concepts as samples
from ui.snippets.parts import listed, loading, sample_lines, script

_READ = {"most_rows": 1000, "max_characters": 2000}  # what `read_rows` takes without being told
_ROWS = """\
results = score_rows(bert, rows, {ask}, hide={hide!r}, top_k={top_k})
for one in results:
    print(one.row.number, {asked}one.problem or "")
print(summarise_rows(results))"""
_OF = {
    "masks": "[(mask.original, mask.predictions[0].token) for mask in one.masks], ",
    "next": "one.is_next, ",
    "order": "one.in_order, ",
    "replaced": "one.suspected, one.most_likely_replaced, ",
    "classes": "one.predicted, one.predicted_probability, ",
    "perplexity": "one.perplexity, ",
}


_MAP = """\
found = row_vectors(bert, rows, pooling={pooling!r}{judged})
vectors = found.vectors[{layer}]  # [rows, units] after layer {layer}"""
_PLACES = """
places, shares = project_to_plane(vectors, {way!r}{dimensions})
known = row_attributes(results)[{name!r}]
for index, place in zip(found.places, places):
    print(rows[index].number, place.round(3), known[index])"""
_SUBSET = """\
own = [one for one in results if one.row.number in {numbers}]  # {name}
print(summarise_rows(own))"""
_CURVE = """\
curve = class_curve(bert, {results}, {label!r})
print(curve.average_precision, curve.auc, curve.best)  # of the class against the rest; the threshold of the highest F1
print(curve.at({threshold}))"""
_NEAR = """\
numbers = [rows[index].number for index in found.places]
near = nearest_rows(vectors, numbers.index({number}), top_k={top_k})
print([(numbers[index], round(cosine, 3)) for index, cosine in near])  # the rows nearest to row {number}"""


def dataset(view, shared, file, ask, hide, labelled, subset=None, plane=None, curve=None):
    """A file asked row by row.

    Args:
        file: ``ui.widgets.file_input.Chosen``. ask: what the model is asked for. hide: as `score_rows` takes it.
        labelled: whether classes are asked for and the file has their labels.
        subset: the chosen one's name and the numbers of its rows, or None.
        plane: of the map of the rows its layer, pooling, way (None where the rows are too few for it), the name of
            what colours it, the number of the row whose neighbours are listed (None for none), how many they are,
            and the dimensions; None for no map.
        curve: the class whose curves are shown, and a threshold; None for none.
    """
    imports, read = rows_of(file)
    laid_out, names = "", [*imports, "score_rows", "summarise_rows", *["summarise_classes"] * labelled]
    if plane is not None:
        layer, pooling, way, name, number, top_k, dimensions = plane
        judged = ', ask=("classes",)' if "classes" in ask else ""
        laid_out = _MAP.format(layer=layer, pooling=pooling, judged=judged)
        names.append("row_vectors")
        if way is not None:
            laid_out += _PLACES.format(way=way, name=name, dimensions=", 3" if dimensions == 3 else "")
            names += ["row_attributes", "project_to_plane"]
        if number is not None:
            laid_out += "\n" + _NEAR.format(number=number, top_k=top_k)
            names.append("nearest_rows")
    told = ""
    if curve is not None:
        names.append("class_curve")
        told = _CURVE.format(results="own" if subset else "results", label=curve[0], threshold=curve[1])
    names = ", ".join(sorted(names))
    asked = "".join(_OF[name] for name in ask)
    body = _ROWS.format(ask=tuple(ask), hide=hide, top_k=view.top_k, asked=asked)
    head = [*needs(file), f"from bert_tf.explain import {names}"]
    scored = "print(summarise_classes(bert, results))" if labelled else ""
    own = ""
    if subset is not None:
        own = _SUBSET.format(name=subset[0], numbers=set(subset[1]) or "set()")
        own += "\nprint(summarise_classes(bert, own))" if labelled else ""
    return script(head, f"{loading(view, shared.name)}\n{read}", body, scored, own, told, laid_out)


def needs(file):
    """The imports of Python's own modules that reading a file takes."""
    return () if file.typed else ("import pathlib",)


def rows_of(file):
    """(names to import from `bert_tf.explain`, lines that make ``rows``) of a file that was chosen on a page."""
    if file.typed:
        # With the empty ones: what is hidden in a row hangs on its number.
        return ["read_rows"], f'rows = read_rows("\\n".join({listed(file.data.splitlines())})).rows'
    return ["file_kind", "read_rows"], reading_rows(
        file.name, not file.from_visitor, file.first, file.second, file.bounds
    )


def reading_rows(name, sample, first, second, bounds):
    """The lines that read an uploaded file, or a sample by its path in the project."""
    more = {"first": first, "second": second}
    chosen = "".join(f", {key}={value!r}" for key, value in more.items() if value is not None)
    chosen += "".join(f", {key}={value!r}" for key, value in bounds.items() if value != _READ[key])
    path = f'pathlib.Path("assets/samples/{name}")' if sample else path_of(name)
    says = "in the project's folder" if sample else "your file"
    return f"file = {path}  # {says}\nrows = read_rows(file.read_bytes(), file_kind(file.name){chosen}).rows"


def path_of(name):
    """A visitor's own file as it is written: its name, to be replaced by where it lies."""
    return f"pathlib.Path({name!r})"


_CONCEPTS = """\
{sentences}
found = concept_test(bert, rows, concept, others, {of!r}{answer}{hide})
print(found.scores.mean(axis=1).round(3))  # after each layer: the share of rows that rise along the concept's vectors
print(found.chance.mean(axis=1).round(3), found.is_significant)  # along chance vectors; whether that differs
print(found.accuracies.mean(axis=1).round(3))  # of the classifiers, on sentences held out"""


def concepts(view, shared, file, name, concept, others, of, answer, hide, label):
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
