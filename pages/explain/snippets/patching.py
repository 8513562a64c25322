"""The Python code for what the page patching shows."""

from ui.widgets.snippet_parts import loading, reading, script, target

_RESULT = """\
target = {target}
result = {call}
print(result.clean, result.corrupted)  # the answer in the first input, and in the other
"""
_PATCHING = _RESULT + "print(result.recovered.round(3))  # row: {row}, column: {column}"
_PATHS = (
    _RESULT
    + """\
print(result.recovered.round(3))  # row: layer, column: head, then feed-forward
print(result.share(result.embeddings), result.share(result.whole))  # from the embeddings; all that enters"""
)


def snippet(view, shared, trace, other, call):
    """Vectors of the first input put into the other.

    Args:
        call: ``Call`` of `patch_states`, `patch_blocks`, `patch_heads` or `patch_paths`.
    """
    maker, written = target(call["target"], shared.tokenizer)
    load = f"{loading(view, shared.name)}\n{reading(trace)}\n{reading(other, 'other')}  # as many tokens"
    lines = _PATHS if call.name == "patch_paths" else _PATCHING
    body = lines.format(
        target=written,
        call=call.python("bert", "trace", "other", target="target"),
        row="hidden state" if call.name == "patch_states" else "layer",
        column="head" if call.name == "patch_heads" else "token",
    )
    return script([maker, *call.imports("target")], load, body)
