"""The Python code for what the page counterfactuals shows."""

from ui.samples.minimal_pairs import PAIRS
from ui.widgets.snippet_parts import about, listed, loading, script

_OUTCOMES = """\
variants = [{variants}]
for outcome in {call}:
    print(outcome.variant.label, outcome.variant.tokens)
{says}"""
_OF_MASKS = """\
    for one in outcome.masks:
        print(one.position, [(prediction.token, round(prediction.probability, 3)) for prediction in one.predictions])"""
_WHOLE = """\
whole = next(one for one in bert.fill_mask(trace, top_k={top_k}) if one.position == {position})
print([(prediction.token, round(prediction.probability, 3)) for prediction in whole.predictions])
"""
_LESS = """\
for word, outcome in {call}:
    {says}"""
_LESS_MASKS = """\
prediction = outcome.masks[0].predictions[0].token
    print(word.text, prediction, outcome.log_probability_changes.mean().round(3))
    print(outcome.divergences.mean().round(3))"""
_WORD = """\
word = next(one for one in trace.words() if (one.source, one.index) == {place})  # {text}
"""
_TOTALS = "print(round({pair}.good.total, 2), round({pair}.bad.total, 2), round({pair}.margin, 2))  # nats"


def one_side(view, shared, trace, call, sides, position):
    """What stands before the mask at ``position`` alone, and what stands after it; call, sides: as in `changed`."""
    whole = _WHOLE.format(top_k=view.top_k, position=position)
    imports, outcomes = _outcomes(view, trace, call, sides)
    return about(view, shared, trace, imports, whole + outcomes)


def a_word_less(view, shared, trace, call):
    """Every word left out once; call: ``Call`` of `without_each_word`."""
    pair = _pair(trace)
    says = [_LESS_MASKS] if trace.masks else []
    says += [f"print(word.text, outcome.{pair}, outcome.{pair}_change)"] if pair else []
    body = _LESS.format(call=call.python("bert", "trace"), says="\n    ".join(says))
    return about(view, shared, trace, call.imports(), body)


def changed(view, shared, trace, call, changes):
    """Another text.

    Args:
        call: ``Call`` of `predict_variants`. changes: ``Call``s of the functions that make the variants.
    """
    imports, outcomes = _outcomes(view, trace, call, changes)
    words = [dict(change.options)["word"] for change in changes if "word" in dict(change.options)]
    lines = [
        _WORD.format(place=(word.source, word.index), text=word.text if word.text.isprintable() else "the word")
        for word in words
    ]
    return about(view, shared, trace, imports, "".join([*lines, outcomes]))


def _outcomes(view, trace, call, changes):
    """(Import lines, lines that print the predictions for changed texts)."""
    call = call.replace(top_k=view.top_k)
    says = [_OF_MASKS] if trace.masks else []
    says += [f"    print(outcome.{_pair(trace)})"] if _pair(trace) else []
    lines = _OUTCOMES.format(
        variants=", ".join(change.python("bert", "trace", word="word") for change in changes),
        call=call.python("bert", "trace", "variants"),
        says="\n".join(says),
    )
    return [line for one in (call, *changes) for line in one.imports("word")], lines


def _pair(trace):
    """The head that judges the pair: "nsp", "sop" or None."""
    return next((head for head in ("nsp", "sop") if getattr(trace, head) is not None), None)


def pairs(view, shared, call, good, bad, call_of_all):
    """Two sentences, the likelier of them.

    Args:
        call: ``Call`` of `pseudo_likelihood`. good, bad: the sentences.
        call_of_all: ``Call`` of `minimal_pairs` for the page's examples; None where they are not shown.
    """
    scores = ", ".join(call.python("bert", repr(text)) for text in (good, bad))
    lines, imports = [f"pair = MinimalPair({scores})", _TOTALS.format(pair="pair")], call.imports()
    if call_of_all is not None:
        lines.append(f"\npairs = {listed((one.good, one.bad) for one in PAIRS)}  # acceptable, unacceptable")
        lines.append(f"for one in {call_of_all.python('bert', 'pairs')}:")
        lines.append(f"    {_TOTALS.format(pair='one')}")
        imports += call_of_all.imports()
    imports.append("from bert_tf.explain import MinimalPair")
    return script(imports, loading(view, shared.name), "\n".join(lines))


def snippet(view, shared, kind, *results):
    """The text changed: the function called ``kind`` of this module writes the lines."""
    write = {"sides": one_side, "less": a_word_less, "change": changed, "pairs": pairs}[kind]
    return write(view, shared, *results)
