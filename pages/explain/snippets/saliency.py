"""The Python code for what the page saliency shows."""

from ui.samples import concepts
from ui.widgets import targets
from ui.widgets.snippet_parts import about, sample_lines, target

_SALIENCY = """\
target = {target}
result = {call}
print(result.target.label, result.log_probability)  # {unit}
for one in result.words:
    print(one.word.source, one.word.text, round(one.score, 3)){last}"""
_REDUCTION = """\
target = {target}
result = {call}
print(result.target.label, result.log_probability)  # in the whole text
print([word.text for word in result.remaining], result.remaining_log_probability)
for one in result.removed:  # in the order in which they went, and the log-probability then
    print(one.word.source, one.word.text, round(one.log_probability, 3))"""
_HOTFLIP = """\
target = {target}
result = {call}
print(result.target.label, result.log_probability, result.flipped)  \
# its log-probability; whether another answer wins in the end
for one in result.applied + result.tried:  # one on top of the other; then what was tried in the text as it is
    print(one.word.text, one.new, round(one.change, 3), round(one.estimate, 3), one.answer.label)"""
_LAST = {
    "integrated-gradients": "\nprint(result.convergence_delta)  # by which the scores miss what the answer gains",
    "smoothgrad": "\nprint(result.noisy_log_probability)  # the mean over the noisy copies",
    "deeplift": "\nprint(result.baseline_log_probability)  # at the reference; the scores add up to the difference",
    "lrp": "\nprint(result.log_odds, result.rest)  # what the scores of all tokens and the rest add up to",
    "lime": "\nprint(result.weighted_r2)  # weighted R² of the linear model, on draws it was not fitted to",
}


def snippet(view, shared, trace, call, method):
    """How each word changes one answer.

    Args:
        call: ``Call`` of the method's function. method: a name of ``SALIENCY_METHODS``.
    """
    answer, texts = call["target"], dict(call.options).get("baseline")
    maker, written = target(answer, shared.tokenizer)
    options = {"target": "target"}
    if isinstance(texts, tuple):
        options["baseline"] = f"{sample_lines(concepts.OTHERS)}[:{len(texts)}]"
    lines = {"input-reduction": _REDUCTION, "hotflip": _HOTFLIP}.get(method, _SALIENCY)
    body = lines.format(
        target=written,
        call=call.python("bert", "trace", **options),
        unit="its value" if targets.score_unit(answer) != "nats" else "its log-probability",
        last=_LAST.get(method, ""),
    )
    return about(view, shared, trace, [maker, *call.imports(*options)], body)
