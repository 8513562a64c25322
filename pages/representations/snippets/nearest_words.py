"""The Python code for what the page nearest words shows."""

from ui.widgets.snippet_parts import about, loading, rows_of, span

_NEIGHBOURS = """\
words, table = word_ids(bert.tokenizer), embedding_table(bert, "token")
for at in {shown}:
    vectors = {vectors}
    near = nearest_tokens(bert, vectors, top_k={top_k}, centred={centred}, among=words)
    # The nearest word but itself: {says}.
    print(trace.tokens[at], [next(one.token for one in line if one.id != trace.token_ids[at]) for line in near])"""
_NEAREST = """\
at = {at}
near = nearest_tokens(bert, {vector}, top_k={top_k}, centred={centred}, among=words)
print(trace.tokens[at], [(one.token, round(one.similarity, 3)) for one in near[0]])"""
_PLACES = """\
{vectors}
result = nearest_contexts(bert, vectors, {layer}, rows, top_k={top_k}, centred={centred}{more})
near = result.nearest[0]
for one in near:  # the places in the file nearest to {what}
    print(one.row.number, round(one.similarity, 3), "{{}}[{{}}]{{}}".format(*one.parts))"""
_LOOKS = """
looked = [one.most_attended for one in near]
for one in looked:  # where it looks most from there{mean}
    print(one.token, round(one.share, 3), f"{{one.offset:+d}}")
print(count_offsets(near))  # how far away, in tokens"""
_LABELLED = """\
labels = matched_labels(tagger, near)
print(labels, count_labels(labels))  # parts of speech of the words result"""
_PARSED = """\
tags, relations = parsed_labels(near)
print(count_labels(tags), count_labels(relations))  # of the words result, as the file has them"""
_LABELLED_THERE = """
there = matched_labels(tagger, looked)
print(there, count_labels(there))  # of those looked at"""
_PARSED_THERE = """
tags_there, relations_there = parsed_labels(looked)
print(count_labels(tags_there), count_labels(relations_there))  # of those looked at"""


def snippet(view, shared, trace, shown, centred, top_k, at, state, file=None, heads=None, tagger=None, parsed=False):
    """The words that lie nearest.

    Args:
        shown: positions. at, state: of the open cell; state: of the hidden state, None for the static vector.
        file: ``ChosenFile`` where its places are looked through, None for the vocabulary.
        heads: of the layer, from 0, whose vectors are compared there; None for the state.
        tagger: name of the model that labels the words result, or None. parsed: whether the file has labels of its own.
    """
    if file is not None:
        return _in_file(view, shared, trace, centred, top_k, at, state, file, heads, tagger, parsed)
    alike = trace.hidden_states.shape[-1] == shared.config.embedding_width
    static = "table[trace.token_ids[at]][None]"
    body = _NEIGHBOURS.format(
        shown=span(shown),
        vectors=f"np.concatenate([{static}, trace.hidden_states[:, at]])" if alike else static,
        says="by the static vector, then by every state, the embeddings first" if alike else "by the static vector",
        top_k=top_k,
        centred=centred,
    )
    vector = static if state is None else f"trace.hidden_states[{state}, at][None]"
    opened = _NEAREST.format(at=at, vector=vector, top_k=top_k, centred=centred)
    imports = ["import numpy as np"] if alike else []
    imports += [
        "from bert_tf.explain import embedding_table, nearest_tokens",
        "from bert_tf.explain.representations.vectors import word_ids",
    ]
    return about(view, shared, trace, imports, body, opened)


def _in_file(view, shared, trace, centred, top_k, at, state, file, heads, tagger, parsed):
    """The places of a file; the arguments as those of `neighbours`."""
    imports, read = rows_of(file)
    names = ["nearest_contexts"]
    vectors, layer, more = f"vectors = trace.hidden_states[{state}, [{at}]]", state, ""
    what = f"the token's vector after layer {state}"
    looks = ""
    if heads is not None:
        names += ["head_outputs", "count_offsets"]
        several = len(heads) > 1
        head = list(heads) if several else heads[0]
        layer, more = state - 1, f", head={head}{'' if view.special else ', special=False'}"
        vectors = f"vectors = head_outputs(bert, trace.hidden_states[{layer}], {layer}, {head})[[{at}]]"
        numbers = ", ".join(str(one + 1) for one in heads)
        what = f"what head{'s' * several} {numbers} of layer {state} put{'s' * (not several)} together"
        looks = _LOOKS.format(mean=", by the mean of their maps" if several else "")
    places = _PLACES.format(vectors=vectors, layer=layer, top_k=top_k, centred=centred, more=more, what=what) + looks
    labelled = ""
    if parsed:
        names += ["count_labels", "parsed_labels"]
        labelled = _PARSED + (_PARSED_THERE if looks else "")
    elif tagger is not None:
        names += ["count_labels", "matched_labels"]
        labelled = f"{loading(view, tagger, 'tagger')}\n{_LABELLED}{_LABELLED_THERE if looks else ''}"
    imports = [*imports, f"from bert_tf.explain import {', '.join(names)}"]
    return about(view, shared, trace, imports, read, places, labelled)
