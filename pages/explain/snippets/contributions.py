"""The lines of Python that do what the page contributions shows."""

from ui.widgets.snippet_parts import about, target

_CONTRIBUTIONS = """\
target = {target}
found = contributions(bert, trace, target)
print(found.score, found.total)  # {unit}, and what all parts make of it
print(found.input, found.biases)
print(found.heads.round(3))  # row: layer, column: head
print(found.feed_forward.round(3))  # of each layer"""


def snippet(view, shared, trace, asked):
    """What each part puts into one answer directly; asked: ``Target``."""
    maker, call = target(asked, shared.tokenizer)
    body = _CONTRIBUTIONS.format(target=call, unit="the value" if asked.is_regression else "its log-odds")
    return about(view, shared, trace, (f"from bert_tf.explain import contributions, {maker}",), body)
