"""The Python code for what the page agreement shows."""

from ui.widgets.snippet_parts import loading_two, rows_of, script

_AGREEMENT = """\
result = {call}
print(result.same_top_prediction, result.divergence, result.same_next, result.same_order, result.replaced_difference)
for one in result.rows:  # those they differ on most first
    print(one.row.number, one.divergence, (one.is_next_a, one.is_next_b), (one.in_order_a, one.in_order_b), \
one.replaced_difference)
    print([(mask.predictions_a[0].token, mask.predictions_b[0].token) for mask in one.masks])"""


def snippet(view, names, file, call):
    """Two models on every row of a file.

    Args:
        names: of the models. file: ``ChosenFile``. call: ``Call`` of `agreement`.
    """
    imports, read = rows_of(file)
    body = _AGREEMENT.format(call=call.python("bert", "second", "rows"))
    return script([*imports, *call.imports()], f"{loading_two(view, names)}\n{read}", body)
