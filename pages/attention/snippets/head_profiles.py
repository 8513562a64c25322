"""The Python code for what the page head profiles shows."""

from ui.widgets.snippet_parts import about, loading, reading_rows, script

_PROFILE = """\
print(result.summary.{measure}.round(2))  # row: a layer, column: a head
print(result.clusters)
print(result.coordinates.round(3))  # where each head lies on the plane"""
_SYNTAX = """\
for name, one in [("all", result.syntax.overall), *result.syntax.relations.items()]:
    print(name, one.count, one.best_direction.max().round(3))"""


def snippet(view, shared, call, measure, trace=None, file=None, sample=False, bounds=None, trees=False):
    """What every head does.

    Args:
        call: ``Call`` of `head_profiles`. measure: name of the one that is shown.
        trace: of the page's text; or file: name of an uploaded one, or if `sample` of one of the explorer's;
            bounds: how much of it is read; trees: whether it has dependency trees.
    """
    printed = _PROFILE.format(measure=measure)
    if trace is not None:
        return about(view, shared, trace, call.imports(), f"result = {call.python('bert', 'trace')}\n{printed}")
    texts = f"result = {call.python('bert', 'rows=rows')}"
    lines = [loading(view, shared.name), reading_rows(file, sample, None, None, bounds), texts]
    imports = (
        *(() if sample else ("import pathlib",)),
        "from bert_tf.explain import file_kind, read_rows",
        *call.imports(),
    )
    printed = "" if trees and measure == "syntax" else printed
    return script(imports, "\n".join(lines), printed, _SYNTAX if trees else "")
