"""The lines of Python that do what the page saliency shows."""

from bert_tf.explain import SALIENCY_METHODS
from ui.samples import concepts
from ui.widgets import targets
from ui.widgets.snippet_parts import about, sample_lines, target

_SALIENCY = """\
target = {target}
found = {method}(bert, trace, target{more})
print(found.target.label, found.log_probability)  # {unit}
for one in found.words:
    print(one.word.source, one.word.text, round(one.score, 3)){last}"""
_REDUCTION = """\
target = {target}
found = reduce_input(bert, trace, target)
print(found.target.label, found.log_probability)  # in the whole text
print([word.text for word in found.remaining], found.remaining_log_probability)
for one in found.removed:  # in the order in which they went, and the log-probability then
    print(one.word.source, one.word.text, round(one.log_probability, 3))"""
_HOTFLIP = """\
target = {target}
found = hotflip(bert, trace, target{more})
print(found.target.label, found.log_probability, found.flipped)  \
# its log-probability; whether another answer wins in the end
for one in found.applied + found.tried:  # one on top of the other; then what was tried in the text as it is
    print(one.word.text, one.new, round(one.change, 3), round(one.estimate, 3), one.answer.label)"""
_LAST = {
    "integrated-gradients": "\nprint(found.convergence_delta)  # by which the scores miss what the answer gains",
    "smoothgrad": "\nprint(found.noisy_log_probability)  # the mean over the noisy copies",
    "deeplift": "\nprint(found.baseline_log_probability)  # at the reference; the scores add up to the difference",
    "lrp": "\nprint(found.log_odds, found.rest)  # what the scores of all tokens and the rest add up to",
    "lime": "\nprint(found.weighted_r2)  # weighted R² of the linear model, on draws it was not fitted to",
}


def snippet(view, shared, trace, asked, method, settings):
    """What each word does to one answer.

    Args:
        asked: ``Target``. method: a name of ``SALIENCY_METHODS``.
        settings: dict of its function's keyword arguments.
    """
    maker, call = target(asked, shared.tokenizer)
    name = SALIENCY_METHODS[method].__name__
    imports, texts = [f"from bert_tf.explain import {maker}, {name}"], settings.get("baseline")
    written = {key: repr(value) for key, value in settings.items()}
    if isinstance(texts, tuple):
        imports.append("import pathlib")
        written["baseline"] = f"{sample_lines(concepts.OTHERS)}[:{len(texts)}]"
    more = "".join(f", {key}={value}" for key, value in written.items())
    unit = "its value" if targets.score_unit(asked) != "nats" else "its log-probability"
    lines = {"input-reduction": _REDUCTION, "hotflip": _HOTFLIP}.get(method, _SALIENCY)
    body = lines.format(target=call, method=name, more=more, unit=unit, last=_LAST.get(method, ""))
    return about(view, shared, trace, imports, body)
