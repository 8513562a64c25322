"""The Python code for what the page word senses shows."""

from ui.samples import word_senses
from ui.widgets.snippet_parts import listed, loading, script

_MEANING = """\
result = occurrences(bert, texts, {word!r}, most={most})
vectors = result.vectors[{layer}]  # [occurrences, units] after layer {layer}
{laid_out}print(cosine_similarities(vectors).round(3))"""
_LAID_OUT = """\
for place, text in zip(places, result.texts):
    print({sense}texts[text], place.round(3))
"""
_APART = """\
apart = sense_separation(result.vectors, [senses[text] for text in result.texts])
print(apart.nearest.round(3), apart.within.round(3), apart.between.round(3))  # a number a layer"""


def snippet(view, shared, chosen, word, read, layer, way, dimensions, most):
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
        truncated_texts = f"[:{len(read.texts)}]" if read.left_out else ""
        return (
            f'lines = pathlib.Path("assets/samples/senses/{chosen}.tsv").read_text("utf-8").splitlines()'
            f"{truncated_texts}\n"
            'senses, texts = zip(*(line.split("\\t") for line in lines))'
        )
    labels = f"\nsenses = {list(read.senses)}" if any(read.senses) else ""
    return f"texts = {listed(read.texts)}{labels}"
