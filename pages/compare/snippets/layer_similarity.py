"""The Python code for what the page layer similarity shows."""

from ui.widgets.snippet_parts import loading_two, rows_of, script

_SIMILARITY = """\
result = {call}
print(result.similarity.round(3))  # row: a hidden state of the one, column: of the other"""


def snippet(view, names, call, rows, file=None, left_out=()):
    """How alike the layers of two models are.

    Args:
        names: of the models. call: ``Call`` of `compare_layers`. rows: the ``TextRow``s that are read.
        file: ``ChosenFile`` whose first rows they are; None for the page's text.
        left_out: the numbers of the rows that have lost their text B, which one of the models does not read.
    """
    if file is None:
        (row,) = rows
        imports = ["from bert_tf.explain import TextRow"]
        read, written = f"rows = [TextRow(1, {row.text_a!r}, {row.text_b!r})]", "rows"
    else:
        (imports, read), written = rows_of(file), f"rows[:{len(rows)}]"
        if left_out:
            some = f" if row.number in {set(left_out)} else row" if any(row.text_b for row in rows) else ""
            read += f"\nrows = [dataclasses.replace(row, text_b=None){some} for row in rows]"
            imports = [*imports, "import dataclasses"]
    body = _SIMILARITY.format(call=call.python("bert", "None", written, "second"))
    return script([*imports, *call.imports()], f"{loading_two(view, names)}\n{read}", body)
