"""The Python code for what the page word senses shows."""

from ui.samples import word_senses
from ui.widgets.snippet_parts import listed, loading, script

_MEANING = """\
result = {call}
vectors = result.vectors[{layer}]  # [occurrences, units] after layer {layer}
{laid_out}print(cosine_similarities(vectors).round(3))"""
_LAID_OUT = """\
places, shares = {call}
for place, text in zip(places, result.texts):
    print({sense}texts[text], place.round(3))
"""
_APART = """\
apart = sense_separation(result.vectors, [senses[text] for text in result.texts])
print(apart.nearest.round(3), apart.within.round(3), apart.between.round(3))  # a number a layer"""


def snippet(view, shared, chosen, word, read, call, layer, projection):
    """One word in many sentences.

    Args:
        chosen: the example, or None for the visitor's own sentences. word, read: it and the ``Sentences``.
        call: ``Call`` of `occurrences`. layer: whose vectors are shown, 0 the embeddings.
        projection: ``Call`` of `project_to_plane`; None where the occurrences are too few for it.
    """
    imports, laid_out = [*call.imports(), "from bert_tf.explain import cosine_similarities"], ""
    if projection is not None:
        sense = "senses[text], " if any(read.senses) else ""
        laid_out = _LAID_OUT.format(call=projection.python("vectors"), sense=sense)
        imports += projection.imports()
    labelled = len({sense for sense in read.senses if sense}) > 1
    imports += ["from bert_tf.explain import sense_separation"] * labelled
    body = _MEANING.format(call=call.python("bert", "texts", repr(word)), layer=layer, laid_out=laid_out)
    load = f"{loading(view, shared.name)}\n{_sentences(chosen, read)}"
    return script(imports, load, body, _APART if labelled else "")


def _sentences(chosen, read):
    if chosen in word_senses.WORDS:
        truncated_texts = f"[:{len(read.texts)}]" if read.left_out else ""
        return (
            f'lines = bert_tf.sample_file("senses/{chosen}.tsv").read_text("utf-8").splitlines()'
            f"{truncated_texts}\n"
            'senses, texts = zip(*(line.split("\\t") for line in lines))'
        )
    labels = f"\nsenses = {list(read.senses)}" if any(read.senses) else ""
    return f"texts = {listed(read.texts)}{labels}"
