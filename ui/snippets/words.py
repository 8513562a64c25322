"""The lines of the pages about words as vectors."""

from bert_tf.explain.representations.vectors import PARTS
from ui.samples import word_senses
from ui.snippets.files import needs, rows_of
from ui.snippets.parts import about, listed, loading, script, span

_INPUTSUM = """\
found = embedding_parts(bert, trace)
shown = {shown}
for at in shown:  # lengths of the vectors of token, segment and position, and of their sum; shares of it
    print(trace.tokens[at], found.norms[:, at].round(2), found.total_norms[at].round(2), found.shares[:, at].round(3))
print(cosine_similarities({vectors}[list(shown)]).round(3))  # how alike these tokens are
positions = cosine_similarities(embedding_table(bert, "position"))
print(positions[::4, ::4].round(3))  # how alike the places are
print(mean_by_distance(positions).round(3))  # and by how far they are apart"""


def inputsum(view, shared, trace, shown, of):
    """The sum of three vectors; shown: positions. of: the vector whose likeness is shown."""
    vectors = f"found.vectors[{PARTS.index(of)}]" if of in PARTS else "found.total"
    imports = (
        "from bert_tf.explain import cosine_similarities, embedding_parts, embedding_table",
        "from bert_tf.explain.representations.vectors import mean_by_distance",
    )
    return about(view, shared, trace, imports, _INPUTSUM.format(shown=span(shown), vectors=vectors))


_MEANING = """\
found = occurrences(bert, texts, {word!r}, most={most})
vectors = found.vectors[{layer}]  # [occurrences, units] after layer {layer}
{laid_out}print(cosine_similarities(vectors).round(3))"""
_LAID_OUT = """\
for place, text in zip(places, found.texts):
    print({sense}texts[text], place.round(3))
"""
_APART = """\
apart = sense_separation(found.vectors, [senses[text] for text in found.texts])
print(apart.nearest.round(3), apart.spread_snapshots.round(3), apart.between.round(3))  # a number a layer"""


def meaning(view, shared, chosen, word, read, layer, way, dimensions, most):
    """One word in many sentences.

    Args:
        chosen: the example, or None for the visitor's own sentences. word, read: it and the ``Sentences``.
        layer, way, dimensions: of the plane or the space; way None where the occurrences are too few for it.
        most: occurrences that are looked at.
    """
    names, laid_out = ["cosine_similarities", "occurrences"], ""
    if way is not None:
        function, made = ("principal_components", "places, shares") if way == "pca" else (way, "places")
        says = _LAID_OUT.format(sense="senses[text], " if any(read.senses) else "")
        laid_out = f"{made} = {function}(vectors, {dimensions})\n{says}"
        names.append(function)
    labelled = len({sense for sense in read.senses if sense}) > 1
    names = sorted([*names, *["sense_separation"] * labelled])
    body = _MEANING.format(word=word, most=most, layer=layer, laid_out=laid_out)
    imports = [*(["import pathlib"] if chosen else []), f"from bert_tf.explain import {', '.join(names)}"]
    load = f"{loading(view, shared.name)}\n{_sentences(chosen, read)}"
    return script(imports, load, body, _APART if labelled else "")


def _sentences(chosen, read):
    if chosen in word_senses.WORDS:
        slice_text = f"[:{len(read.texts)}]" if read.left_out else ""
        return (
            f'lines = pathlib.Path("assets/samples/senses/{chosen}.tsv").read_text("utf-8").splitlines(){slice_text}\n'
            'senses, texts = zip(*(line.split("\\t") for line in lines))'
        )
    labels = f"\nsenses = {list(read.senses)}" if any(read.senses) else ""
    return f"texts = {listed(read.texts)}{labels}"


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
found = nearest_contexts(bert, vectors, {layer}, rows, top_k={top_k}, centred={centred}{more})
near = found.nearest[0]
for one in near:  # the places in the file nearest to {what}
    print(one.row.number, round(one.similarity, 3), "{{}}[{{}}]{{}}".format(*one.parts))"""
_LOOKS = """
looked = [one.most_attended for one in near]
for one in looked:  # where it looks most from there{mean}
    print(one.token, round(one.share, 3), f"{{one.offset:+d}}")
print(count_offsets(near))  # how far away, in tokens"""


_LABELLED = """\
labels = matched_labels(tagger, near)
print(labels, count_labels(labels))  # parts of speech of the words found"""
_PARSED = """\
tags, relations = parsed_labels(near)
print(count_labels(tags), count_labels(relations))  # of the words found, as the file has them"""
_LABELLED_THERE = """
there = matched_labels(tagger, looked)
print(there, count_labels(there))  # of those looked at"""
_PARSED_THERE = """
tags_there, relations_there = parsed_labels(looked)
print(count_labels(tags_there), count_labels(relations_there))  # of those looked at"""


def neighbours(view, shared, trace, shown, centred, top_k, at, state, file=None, heads=None, tagger=None, parsed=False):
    """The words that lie nearest.

    Args:
        shown: positions. at, state: of the open cell; state: of the hidden state, None for the static vector.
        file: ``ui.widgets.file_input.Chosen`` where its places are looked through, None for the vocabulary.
        heads: of the layer, from 0, whose vectors are compared there; None for the state.
        tagger: name of the model that labels the words found, or None. parsed: whether the file has labels of its own.
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
    names, read = rows_of(file)
    names = [*names, "nearest_contexts"]
    vectors, layer, more = f"vectors = trace.hidden_states[{state}, [{at}]]", state, ""
    what = f"the token's vector after layer {state}"
    looks = ""
    if heads is not None:
        names += ["head_outputs", "count_offsets"]
        several = len(heads) > 1
        head = list(heads) if several else heads[0]
        layer, more = state - 1, f", head={head}{'' if view.special else ', special=False'}"
        vectors = f"vectors = head_outputs(bert, trace.hidden_states[{layer}], {layer}, {head})[[{at}]]"
        said = ", ".join(str(one + 1) for one in heads)
        what = f"what head{'s' * several} {said} of layer {state} put{'s' * (not several)} together"
        looks = _LOOKS.format(mean=", by the mean of their maps" if several else "")
    places = _PLACES.format(vectors=vectors, layer=layer, top_k=top_k, centred=centred, more=more, what=what) + looks
    labelled = ""
    if parsed:
        names += ["count_labels", "parsed_labels"]
        labelled = _PARSED + (_PARSED_THERE if looks else "")
    elif tagger is not None:
        names += ["count_labels", "matched_labels"]
        labelled = f"{loading(view, tagger, 'tagger')}\n{_LABELLED}{_LABELLED_THERE if looks else ''}"
    imports = [*needs(file), f"from bert_tf.explain import {', '.join(names)}"]
    return about(view, shared, trace, imports, read, places, labelled)


_FACTORS = """\
activations = feed_forward_activations(bert, trace{layers}{positions})  # [layers, units, tokens], at least 0
found = factorise(activations, {asked})
print(found.explained, found.shares.round(3))  # shares of the squared length
print(found.tokens.round(2))  # row: a factor, column: a token{which}
for one in found.strongest_units({factor}, {units}{first}):  # layers and units counted from 0
    print(one.layer, one.unit, round(one.weight, 3))"""


def factors(view, shared, trace, asked, layers, positions, factor, units):
    """Activations taken apart.

    Args:
        asked: how many factors. layers: the first and the last, from 0. positions: of the tokens that are looked at.
        factor: the open one, from 0. units: how many of its units are listed.
    """
    whole = layers == (0, shared.config.num_hidden_layers - 1)
    every = len(positions) == trace.length
    body = _FACTORS.format(
        layers="" if whole else f", first={layers[0]}, last={layers[1]}",
        positions="" if every else f", positions={span(positions)}",
        asked=asked,
        which="" if every else " of those",
        factor=factor,
        units=units,
        first=f", first_layer={layers[0]}" if layers[0] else "",
    )
    imports = ("from bert_tf.explain import factorise, feed_forward_activations",)
    return about(view, shared, trace, imports, body)
