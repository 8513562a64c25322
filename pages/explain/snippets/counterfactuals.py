"""The Python code for what the page counterfactuals shows."""

from ui.widgets.snippet_parts import about, listed, loading, script

_ASKED = """\
for outcome in predict_variants(bert, trace, variants, top_k={top_k}):
    print(outcome.variant.label, outcome.variant.tokens)
{says}"""
_OF_MASKS = """\
    for one in outcome.masks:
        print(one.position, [(prediction.token, round(prediction.probability, 3)) for prediction in one.predictions])"""
_ONE_SIDE = """\
variants = [left_context(bert, trace, {at}), right_context(bert, trace, {at})]
"""
_LESS = """\
for word, outcome in without_each_word(bert, trace, top_k=1):
    {says}"""
_LESS_MASKS = """\
prediction = outcome.masks[0].predictions[0].token
    print(word.text, prediction, outcome.log_probability_changes.mean().round(3))
    print(outcome.divergences.mean().round(3))"""
_WORD = """\
word = next(one for one in trace.words() if (one.source, one.index) == {place})  # {text}
variants = [with_word(bert, trace, word, {instead!r})]
"""


def one_side(view, shared, trace, at):
    """What stands before the mask at ``at`` alone, and what stands after it."""
    imports = ("from bert_tf.explain import left_context, predict_variants, right_context",)
    whole = (
        f"whole = next(one for one in bert.fill_mask(trace, top_k={view.top_k}) if one.position == {at})\n"
        "print([(prediction.token, round(prediction.probability, 3)) for prediction in whole.predictions])\n"
    )
    return about(view, shared, trace, imports, whole + _ONE_SIDE.format(at=at) + _outcomes(view, trace))


def a_word_less(view, shared, trace):
    """Every word left out once."""
    pair = _pair(trace)
    says = [_LESS_MASKS] if trace.masks else []
    says += [f"print(word.text, outcome.{pair}, outcome.{pair}_change)"] if pair else []
    return about(
        view,
        shared,
        trace,
        ("from bert_tf.explain import without_each_word",),
        _LESS.format(says="\n    ".join(says)),
    )


def another_word(view, shared, trace, word, instead):
    """A ``WordSpan`` of the trace changed for another word."""
    text = word.text if word.text.isprintable() else "the word"
    body = _WORD.format(place=(word.source, word.index), text=text, instead=instead)
    imports = ("from bert_tf.explain import predict_variants, with_word",)
    return about(view, shared, trace, imports, body + _outcomes(view, trace))


def swapped_texts(view, shared, trace):
    """The second text first."""
    body = "variants = [swapped(bert, trace)]\n" + _outcomes(view, trace)
    return about(view, shared, trace, ("from bert_tf.explain import predict_variants, swapped",), body)


def _outcomes(view, trace):
    says = [_OF_MASKS] if trace.masks else []
    says += [f"    print(outcome.{_pair(trace)})"] if _pair(trace) else []
    return _ASKED.format(top_k=view.top_k, says="\n".join(says))


def _pair(trace):
    """Which verdict on the pair there is: "nsp", "sop" or None."""
    return next((head for head in ("nsp", "sop") if getattr(trace, head) is not None), None)


_PAIRS = """\
pairs = {pairs}
for pair in minimal_pairs(bert, pairs):
    print(round(pair.good.total, 2), round(pair.bad.total, 2), round(pair.margin, 2))  # nats"""


def pairs(view, shared, good, bad, every=False):
    """Two sentences, the likelier of them; every: whether the page's examples follow."""
    more = listed([(good, bad)]) + (" + [(one.good, one.bad) for one in PAIRS]" if every else "")
    imports = ["from bert_tf.explain import minimal_pairs"]
    imports += ["from ui.samples.minimal_pairs import PAIRS  # in the project's folder"] if every else []
    return script(imports, loading(view, shared.name), _PAIRS.format(pairs=more))


def snippet(view, shared, kind, *shown):
    """The text changed: the function called ``kind`` of this module writes the lines."""
    write = {
        "sides": one_side,
        "less": a_word_less,
        "word": another_word,
        "swap": swapped_texts,
        "pairs": pairs,
    }[kind]
    return write(view, shared, *shown)
