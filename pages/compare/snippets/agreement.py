"""The lines of Python that do what the page agreement shows."""

from ui.widgets.snippet_parts import loading_two, needs, rows_of, script

_AGREEMENT = """\
found = agreement(bert, second, rows, hide={hide!r}, top_k={top_k})
print(found.same_top_prediction, found.divergence, found.same_next, found.same_order, found.replaced_difference)
for one in found.rows:  # those they differ on most first
    print(one.row.number, one.divergence, (one.is_next_a, one.is_next_b), (one.in_order_a, one.in_order_b), \
one.replaced_difference)
    print([(mask.predictions_a[0].token, mask.predictions_b[0].token) for mask in one.masks])"""


def snippet(view, names, file, hide):
    """Two models on every row of a file.

    Args:
        names: of the models. file: ``ui.widgets.file_input.Chosen``. hide: as `agreement` takes it.
    """
    readers, read = rows_of(file)
    imports = [*needs(file), f"from bert_tf.explain import {', '.join(sorted([*readers, 'agreement']))}"]
    body = _AGREEMENT.format(hide=hide, top_k=view.top_k)
    return script(imports, f"{loading_two(view, names)}\n{read}", body)
