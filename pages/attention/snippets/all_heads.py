"""The lines of Python that do what the page all heads shows."""

from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about, loading, reading_rows, script

_WEIGHTS = """\
for layer, head in {heads}:  # counted from 0
    weights = trace.attentions[layer, head]  # [tokens, tokens]: row a token that looks, column one looked at
    for row in shown.rows:
        seen = [(trace.tokens[at], weights[row, at].round(3)) for at in shown.columns{least}]
        print(trace.tokens[row], seen)"""
_PROFILE = """\
print(found.summary.{measure}.round(2))  # row: a layer, column: a head
print(cluster_heads(found.distances).reshape(found.summary.entropy.shape))
print(project_heads(found.distances).round(3))  # where each head lies on the plane"""
_SYNTAX = """\
for name, one in [("all", syntax.overall), *syntax.relations.items()]:
    print(name, one.count, one.best_direction.max().round(3))"""


def snippet(view, shared, trace, heads, detail, least=0.0):
    """The weights of the open heads.

    Args:
        heads: pairs (layer, head). detail: the ``Selection`` that is drawn. least: weights below are left out.
    """
    cached = f" if weights[row, at] >= {least}" if least else ""
    body = _WEIGHTS.format(heads=list(heads), least=cached)
    return about(view, shared, trace, ("from bert_tf.plots import select",), drawn_tokens(view, trace, detail), body)


def heads(view, shared, measure, rows, trace=None, file=None, bounds=None):
    """What every head does.

    Args:
        measure: name of the one that is shown. rows: tokens of a text that distances are taken from.
        trace: of the page's text; or file: name of an uploaded one, and bounds: how much of it is read.
    """
    body = _PROFILE.format(measure=measure)
    names = ["cluster_heads", "project_heads"]
    if trace is not None:
        imports = f"from bert_tf.explain import {', '.join([*names, 'profile_trace'])}"
        return about(view, shared, trace, (imports,), f"found = profile_trace(trace, rows={rows})\n{body}")
    names += ["file_kind", "profile_heads", "read_rows"]
    texts = f"found = profile_heads(bert, [(row.text_a, row.text_b) for row in rows], rows={rows})"
    lines = [loading(view, shared.name), reading_rows(file, False, None, None, bounds), texts]
    parsed = file.lower().endswith(".conllu")
    if parsed:
        names.append("syntax_agreement")
        lines.append("syntax = syntax_agreement(bert, [row.parsed for row in rows])")
    imports = ("import pathlib", f"from bert_tf.explain import {', '.join(names)}")
    shown = "" if parsed and measure == "syntax" else body
    return script(imports, "\n".join(lines), shown, _SYNTAX if parsed else "")
