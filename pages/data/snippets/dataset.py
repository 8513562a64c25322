"""The Python code for what the page dataset shows."""

from ui.widgets.snippet_parts import loading, rows_of, script

_ROWS = """\
results = {call}
for one in results:
    print(one.row.number, {printed}one.problem or "")
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
result = {call}
vectors = result.vectors[{layer}]  # [rows, units] after layer {layer}"""
_PLACES = """
places, shares = {call}
known = row_attributes(results)[{name!r}]
for index, place in zip(result.places, places):
    print(rows[index].number, place.round(3), known[index])"""
_SUBSET = """\
own = [one for one in results if one.row.number in {numbers}]  # {name}
print(summarise_rows(own))"""
_CURVE = """\
curve = class_curve(bert, {results}, {label!r})
print(curve.average_precision, curve.auc, curve.best)  # of the class against the rest; the threshold of the highest F1
print(curve.at({threshold}))"""
_NEAR = """\
numbers = [rows[index].number for index in result.places]
near = nearest_rows(vectors, numbers.index({number}), top_k={top_k})
print([(numbers[index], round(cosine, 3)) for index, cosine in near])  # the rows nearest to row {number}"""


def snippet(view, shared, file, call, labelled, subset=None, plane=None, curve=None):
    """Predictions for every row of a file.

    Args:
        file: ``ChosenFile``. call: ``Call`` of `score_rows`.
        labelled: whether classes are predicted and the file has their labels.
        subset: the chosen one's name and the numbers of its rows, or None.
        plane: the map of the rows: its layer, the ``Call`` of `row_vectors`, the ``Call`` of `project_to_plane` (None
            where the rows are too few for it), the attribute that colours it, the number of the row whose neighbours
            are listed (None for none), and how many they are; None for no map.
        curve: the class whose curves are shown, and a threshold; None for none.
    """
    imports, read = rows_of(file)
    ask = call["ask"]
    laid_out, names = "", ["summarise_rows", *["summarise_classes"] * labelled]
    if plane is not None:
        layer, vectors, projection, name, number, top_k = plane
        laid_out = _MAP.format(layer=layer, call=vectors.python("bert", "rows"))
        imports = [*imports, *vectors.imports()]
        if projection is not None:
            laid_out += _PLACES.format(call=projection.python("vectors"), name=name)
            imports += projection.imports()
            names.append("row_attributes")
        if number is not None:
            laid_out += "\n" + _NEAR.format(number=number, top_k=top_k)
            names.append("nearest_rows")
    curve_lines = ""
    if curve is not None:
        names.append("class_curve")
        curve_lines = _CURVE.format(results="own" if subset else "results", label=curve[0], threshold=curve[1])
    names = ", ".join(sorted(names))
    printed = "".join(_OF[name] for name in ask)
    body = _ROWS.format(call=call.python("bert", "rows"), printed=printed)
    head = [*imports, *call.imports(), f"from bert_tf.explain import {names}"]
    scored = "print(summarise_classes(bert, results))" if labelled else ""
    own = ""
    if subset is not None:
        own = _SUBSET.format(name=subset[0], numbers=set(subset[1]) or "set()")
        own += "\nprint(summarise_classes(bert, own))" if labelled else ""
    return script(head, f"{loading(view, shared.name)}\n{read}", body, scored, own, curve_lines, laid_out)
