"""The lines of Python that do what the page attention methods shows."""

from pages.attention.snippets.selection import drawn_tokens
from ui.widgets.snippet_parts import about

_METHODS = """\
found = token_attention(bert, trace, layer={layer}, position={position}, head={head})
columns = {{"raw": found.raw, "effective": found.effective, "norms": found.norms, "rollout": found.rollout}}
{flow}for at in shown.columns:
    print(trace.tokens[at], {{name: values[at].round(3) for name, values in columns.items()}})"""
_FLOW = 'columns["flow"] = scaled(attention_flow(trace, layer={layer}, positions=[{position}])[0])\n'


def snippet(view, shared, trace, position, head, flow, detail):
    """One token's attention by every method; flow: whether the page works it out."""
    names = f"{'attention_flow, ' if flow else ''}token_attention"
    imports = [f"from bert_tf.explain import {names}"]
    imports += ["from bert_tf.explain.attention.token_attention import scaled"] if flow else []
    imports += ["from bert_tf.plots import select"]
    flow = _FLOW.format(layer=view.layer, position=position) if flow else ""
    body = _METHODS.format(layer=view.layer, position=position, head=head, flow=flow)
    return about(view, shared, trace, imports, drawn_tokens(view, trace, detail), body)
