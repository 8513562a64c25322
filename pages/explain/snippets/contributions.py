"""The Python code for what the page contributions shows."""

from ui.widgets.snippet_parts import about, target

_CONTRIBUTIONS = """\
target = {target}
result = {call}
print(result.score, result.total)  # {unit}, and the sum of all parts
print(result.input, result.biases)
print(result.heads.round(3))  # row: layer, column: head
print(result.feed_forward.round(3))  # of each layer"""


def snippet(view, shared, trace, call):
    """What each part puts into one answer directly.

    Args:
        call: ``Call`` of `contributions`.
    """
    answer = call["target"]
    maker, written = target(answer, shared.tokenizer)
    unit = "the value" if answer.is_regression else "its log-odds"
    body = _CONTRIBUTIONS.format(target=written, call=call.python("bert", "trace", target="target"), unit=unit)
    return about(view, shared, trace, [maker, *call.imports("target")], body)
