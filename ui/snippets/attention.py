"""The lines of the pages about attention."""

from bert_tf.plots import select
from ui.snippets.files import reading_rows
from ui.snippets.parts import about, loading, script

_WEIGHTS = """\
for layer, head in {heads}:  # counted from 0
    weights = trace.attentions[layer, head]  # [tokens, tokens]: row a token that looks, column one looked at
    for row in shown.rows:
        seen = [(trace.tokens[at], weights[row, at].round(3)) for at in shown.columns{least}]
        print(trace.tokens[row], seen)"""
_STRONGEST = """\
for layer, heads in enumerate(trace.attentions):  # [layers, heads, tokens, tokens]
    for head, weights in enumerate(heads):
        part = weights[np.ix_(shown.rows, shown.columns)]  # the map of this head
        row, column = np.unravel_index(part.argmax(), part.shape)
        looks, at = trace.tokens[shown.rows[row]], trace.tokens[shown.columns[column]]
        print(layer, head, f"{{looks}} looks most at {{at}}: {{part[row, column]:.3f}}")"""
_NEURON = """\
vectors = head_vectors(bert, trace, layer={layer}, head={head})
query, key = {query}, {key}  # {names}
print(vectors.products(query)[key].round(3))  # component by component
scores, weights = vectors.scores(query), vectors.weights(query)
for at in shown.columns:
    print(trace.tokens[at], scores[at].round(2), weights[at].round(3))"""
_METHODS = """\
found = token_attention(bert, trace, layer={layer}, position={position}, head={head})
columns = {{"raw": found.raw, "effective": found.effective, "norms": found.norms, "rollout": found.rollout}}
{flow}for at in shown.columns:
    print(trace.tokens[at], {{name: values[at].round(3) for name, values in columns.items()}})"""
_FLOW = 'columns["flow"] = scaled(attention_flow(trace, layer={layer}, positions=[{position}])[0])\n'
_PROFILE = """\
print(found.summary.{measure}.round(2))  # row: a layer, column: a head
print(cluster_heads(found.distances).reshape(found.summary.entropy.shape))
print(project_heads(found.distances).round(3))  # where each head lies on the plane"""
_SYNTAX = """\
for name, one in [("all", syntax.overall), *syntax.relations.items()]:
    print(name, one.count, one.best_direction.max().round(3))"""


def attention(view, shared, trace, heads, detail, least=0.0):
    """The weights of the open heads.

    Args:
        heads: pairs (layer, head). detail: the ``Selection`` that is drawn. least: weights below are left out.
    """
    kept = f" if weights[row, at] >= {least}" if least else ""
    body = _WEIGHTS.format(heads=list(heads), least=kept)
    return about(view, shared, trace, ("from bert_tf.plots import select",), _shown(view, trace, detail), body)


def modelview(view, shared, trace, detail, zoomed, least=0.0):
    """The map of every head, or the weights of the one that is enlarged."""
    if zoomed:
        return attention(view, shared, trace, [(view.layer, view.head)], detail, least)
    imports = ("import numpy as np", "from bert_tf.plots import select")
    return about(view, shared, trace, imports, _shown(view, trace, detail), _STRONGEST.format())


def neuron(view, shared, trace, query, key, detail):
    """From the query and the keys to the weights of one token."""
    names = f"{trace.tokens[query]} looks at {trace.tokens[key]}"
    body = _NEURON.format(layer=view.layer, head=view.head, query=query, key=key, names=names)
    imports = ("from bert_tf.explain import head_vectors", "from bert_tf.plots import select")
    return about(view, shared, trace, imports, _shown(view, trace, detail), body)


def methods(view, shared, trace, position, head, flow, detail):
    """One token's attention by every method; flow: whether the page works it out."""
    names = f"{'attention_flow, ' if flow else ''}token_attention"
    imports = [f"from bert_tf.explain import {names}"]
    imports += ["from bert_tf.explain.attention.token_attention import scaled"] if flow else []
    imports += ["from bert_tf.plots import select"]
    flow = _FLOW.format(layer=view.layer, position=position) if flow else ""
    body = _METHODS.format(layer=view.layer, position=position, head=head, flow=flow)
    return about(view, shared, trace, imports, _shown(view, trace, detail), body)


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


def _shown(view, trace, detail):
    """The line that chooses the tokens that are drawn."""
    filters = "".join(
        f", {name}={value!r}"
        for name, value, default in (
            ("shown", view.shown, "all"),
            ("special", view.special, True),
            ("punctuation", view.punctuation, True),
        )
        if value != default
    )
    window = ""
    if select(trace, view.shown, view.special, view.punctuation) != detail:
        window = f".window({view.start}, {max(len(detail.rows), len(detail.columns))})"
    return f"shown = select(trace{filters}){window}  # the tokens that are drawn"
