"""The lines of Python that do what the page saliency shows."""

from ui.samples import concepts
from ui.widgets import targets
from ui.widgets.snippet_parts import about, sample_lines, target

_SALIENCY = """\
target = {target}
found = {method}(bert, trace, target{more})
print(found.target.label, found.score)  # {unit}
for one in found.words:
    print(one.word.source, one.word.text, round(one.score, 3)){last}"""
_REDUCTION = """\
target = {target}
found = reduce_input(bert, trace, target)
print(found.target.label, found.score, found.left_score)  # its log-probability in the whole text, and in what is left
print([word.text for word in found.left])
for one in found.removed:  # in the order in which they went, and the log-probability then
    print(one.word.source, one.word.text, round(one.score, 3))"""
_HOTFLIP = """\
target = {target}
found = hotflip(bert, trace, target{more})
print(found.target.label, found.score, found.flipped)  # its log-probability; whether another answer wins in the end
for one in found.applied + found.tried:  # one on top of the other; then what was tried in the text as it is
    print(one.word.text, one.new, round(one.change, 3), round(one.estimate, 3), one.answer.label)"""
_LAST = {
    "integrated": "\nprint(found.convergence_delta)  # by which the scores miss what the answer gains",
    "smooth": "\nprint(found.noisy_score)  # the mean over the noisy copies",
    "deeplift": "\nprint(found.baseline_score)  # at the reference; the scores add up to the difference",
    "relevance": "\nprint(found.log_odds, found.rest)  # what the scores of all tokens and the rest add up to",
    "lime": "\nprint(found.fit)  # weighted R² of the linear model, on draws it was not fitted to",
}


def snippet(view, shared, trace, asked, method, settings):
    """What each word does to one answer.

    Args:
        asked: ``Target``. method: "integrated", "gradient", "smooth", "deeplift", "relevance", "occlusion", "lime", "reduction"
            or "hotflip".
        settings: dict of its function's keyword arguments.
    """
    maker, call = target(asked, shared.tokenizer)
    name = {
        "integrated": "integrated_gradients",
        "gradient": "gradient_x_input",
        "smooth": "smoothgrad",
        "deeplift": "deeplift",
        "relevance": "layerwise_relevance",
        "occlusion": "occlusion",
        "lime": "lime",
        "reduction": "reduce_input",
        "hotflip": "hotflip",
    }[method]
    imports, texts = [f"from bert_tf.explain import {maker}, {name}"], settings.get("baseline")
    written = {key: repr(value) for key, value in settings.items()}
    if isinstance(texts, tuple):
        imports.append("import pathlib")
        written["baseline"] = f"{sample_lines(concepts.OTHERS)}[:{len(texts)}]"
    more = "".join(f", {key}={value}" for key, value in written.items())
    unit = "its value" if targets.score_unit(asked) != "nats" else "its log-probability"
    lines = {"reduction": _REDUCTION, "hotflip": _HOTFLIP}.get(method, _SALIENCY)
    body = lines.format(target=call, method=name, more=more, unit=unit, last=_LAST.get(method, ""))
    return about(view, shared, trace, imports, body)
