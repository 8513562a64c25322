"""The lines of Python that do what the page patching shows."""

from ui.widgets.snippet_parts import loading, reading, script, target

_PATCHING = """\
target = {target}
found = {patch}
print(found.clean, found.corrupted)  # the answer in the first input, and in the other
print(found.recovered.round(3))  # row: {row}, column: {column}"""
_PATHS = """\
target = {target}
found = patch_paths(bert, trace, other, target{more})
print(found.clean, found.corrupted)  # the answer in the first input, and in the other
print(found.recovered.round(3))  # row: layer, column: head, then feed-forward
print(found.share(found.embeddings), found.share(found.whole))  # from the embeddings; all that enters"""


def snippet(view, shared, trace, other, asked, part, position=None, receiver=None):
    """Vectors of the first input put into the other.

    Args:
        asked: ``Target``.
        part: which vectors, as of ``PatchingResult``, or "path" for the paths to a ``Receiver``, None for the answer.
        position: the only one where heads and the senders of paths are patched.
    """
    maker, call = target(asked, shared.tokenizer)
    load = f"{loading(view, shared.name)}\n{reading(trace)}\n{reading(other, 'other')}  # as many tokens"
    if part == "path":
        more = "" if receiver is None else f", {receiver}"
        more += "" if position is None else f", position={position}"
        names = (maker, "patch_paths") if receiver is None else ("Receiver", maker, "patch_paths")
        return script((f"from bert_tf.explain import {', '.join(names)}",), load, _PATHS.format(target=call, more=more))
    if part == "state":
        name, patch, row = "patch_states", "patch_states(bert, trace, other, target)", "hidden state"
    elif part == "head":
        at = "" if position is None else f", position={position}"
        name, patch, row = "patch_heads", f"patch_heads(bert, trace, other, target{at})", "layer"
    else:
        name, patch, row = "patch_blocks", f"patch_blocks(bert, trace, other, target, block={part!r})", "layer"
    body = _PATCHING.format(target=call, patch=patch, row=row, column="head" if part == "head" else "token")
    return script((f"from bert_tf.explain import {maker}, {name}",), load, body)
