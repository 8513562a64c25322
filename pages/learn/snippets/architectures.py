"""The Python code for what the page architectures shows."""

from ui.widgets.snippet_parts import script

_ARCHITECTURES = """\
rows = architecture_rows({tokens})
for row in rows:
    print(row.name, row.config.num_hidden_layers, row.config.hidden_size, row.parameters, row.flops / 1e9)"""
_SPEED = """\
for row, seconds in zip(rows, measure_speed(rows)):
    print(row.name, seconds and round(1000 * seconds))  # milliseconds; None: too large to be timed"""


def snippet(view, tokens, timed=False):
    """Every size of every member; timed: whether the page times them."""
    imports = (
        f"from bert_tf.explain.models.architecture_table import architecture_rows{', measure_speed' if timed else ''}",
    )
    return script(imports, _ARCHITECTURES.format(tokens=tokens), _SPEED if timed else "")
