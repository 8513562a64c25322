"""The Python code for what the page head profiles shows."""

from ui.widgets.snippet_parts import about, loading, reading_rows, script

_PROFILE = """\
print(result.summary.{measure}.round(2))  # row: a layer, column: a head
print(result.clusters)
print(result.coordinates.round(3))  # where each head lies on the plane"""
_SYNTAX = """\
for name, one in [("all", result.syntax.overall), *result.syntax.relations.items()]:
    print(name, one.count, one.best_direction.max().round(3))"""


def snippet(view, shared, measure, tokens, trace=None, file=None, bounds=None):
    """What every head does.

    Args:
        measure: name of the one that is shown. tokens: of a text that distances are taken from.
        trace: of the page's text; or file: name of an uploaded one, and bounds: how much of it is read.
    """
    body = _PROFILE.format(measure=measure)
    if trace is not None:
        imports = ("from bert_tf.explain import profile_trace",)
        return about(view, shared, trace, imports, f"result = profile_trace(trace, tokens_per_text={tokens})\n{body}")
    texts = f"result = head_profiles(bert, rows=rows, tokens_per_text={tokens})"
    lines = [loading(view, shared.name), reading_rows(file, False, None, None, bounds), texts]
    parsed = file.lower().endswith(".conllu")
    imports = ("import pathlib", "from bert_tf.explain import file_kind, head_profiles, read_rows")
    shown = "" if parsed and measure == "syntax" else body
    return script(imports, "\n".join(lines), shown, _SYNTAX if parsed else "")
