"""The lines of the pages that ask why."""

from bert_tf.explain.attribution.target import classifier_settings
from ui.samples import concepts
from ui.snippets.parts import about, listed, loading, reading, sample_lines, script, span, target
from ui.widgets import targets

_LENS = """\
lens = logit_lens(bert, trace, positions={positions}, top_k={top_k})
for position, words, shares in zip(lens.positions, lens.predicted_tokens, lens.probabilities):
    # After each layer the likeliest word and its probability; the embeddings first.
    print(trace.tokens[position], [(word[0], share[0].round(3)) for word, share in zip(words, shares)])"""
_FOLLOWED = """\
# The token that is open.
one = logit_lens(bert, trace, positions=[{at}], top_k={top_k}{answers})
print(one.answers[0].token, one.answer_probabilities[0].round(3), one.answer_ranks[0])"""
_CLASS_LENS = """\
classes = class_lens(bert, trace)
print(classes.labels, classes.values.round(3))  # row: hidden state, the embeddings first"""


def lens(view, shared, trace, positions=(), at=None, follow="", top_k=5):
    """What the head says on every layer's state: the class of a fine-tuned model, the words at positions.

    Args:
        positions: of the table. at: the open one. follow: a token to follow there, or "" for the answer.
    """
    names, bodies = [], []
    if classifier_settings(shared.bert):
        names, bodies = ["class_lens"], [_CLASS_LENS]
    if positions:
        names.append("logit_lens")
        places = "trace.masks" if positions == trace.masks else span(positions)
        bodies.append(_LENS.format(positions=places, top_k=top_k))
        answers = f", answers=[vocabulary_id(bert.tokenizer, {follow!r})]" if follow else ""
        bodies.append(_FOLLOWED.format(at=at, top_k=top_k, answers=answers))
    imports = [f"from bert_tf.explain import {', '.join(names)}"]
    imports += ["from bert_tf.inference.predictions import vocabulary_id"] if follow else []
    return about(view, shared, trace, imports, *bodies)


_ABLATE = """\
effect = ablate(bert, trace, {ablation}, top_k={top_k}, shifts=True)
{says}
print(effect.attention_shifts.round(3))  # share of its attention that each head turns elsewhere; row a layer"""
_SAYS_MASKS = """\
for before, after in zip(effect.before, effect.after):
    for one in (before, after):
        print(one.position, [(guess.token, round(guess.probability, 3)) for guess in one.predictions])"""
_SWEEP = """\
found = sweep(bert, trace, {parts})
lost = found.score_drop(trace, {on!r})  # what the answer loses without each
for index in np.argsort(-np.abs(lost))[:15]:
    print(found.ablations[index], lost[index].round(3))"""
_KINDS = {
    "heads": (("every_head",), "every_head(bert.config)"),
    "blocks": (("every_feed_forward", "every_layer"), "every_feed_forward(bert.config) + every_layer(bert.config)"),
    "tokens": (("every_token",), "every_token(trace)"),
}


def ablation(view, shared, trace, off, on=None, kind="heads"):
    """What is switched off, and the sweep where the page shows it.

    Args:
        off: ``Ablation``. on: what effects are on, "class", "masks" or "next", or the position of a scored token; None where
            no sweep is shown.
        kind: of the parts in the list, a key of ``_KINDS``.
    """
    names, bodies = ["Ablation", "ablate"], []
    given = {name: value for name, value in vars(off).items() if value}
    said = "Ablation({})".format(", ".join(f"{name}={value}" for name, value in given.items()))
    bodies.append(_ABLATE.format(ablation=said, top_k=view.top_k, says=_verdicts(shared, trace)))
    if on:
        more, parts = _KINDS[kind]
        names += [*more, "sweep"]
        bodies.append(_SWEEP.format(parts=parts, on=on))
    imports = ["import numpy as np"] if on else []
    return about(view, shared, trace, [*imports, f"from bert_tf.explain import {', '.join(names)}"], *bodies)


def _verdicts(shared, trace):
    said = [_SAYS_MASKS] if trace.masks and "mlm" in shared.bert.heads else []
    told = [head for head in ("nsp", "sop") if getattr(trace, head) is not None]
    told += ["replaced"] if trace.replaced is not None else []
    told += ["classes"] if classifier_settings(shared.bert) else []
    return "\n".join([*said, *(f"print(effect.{one}_before, effect.{one}_after)" for one in told)])


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


def saliency(view, shared, trace, asked, method, settings):
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


_CONTRIBUTIONS = """\
target = {target}
found = contributions(bert, trace, target)
print(found.score, found.total)  # {unit}, and what all parts make of it
print(found.input, found.biases)
print(found.heads.round(3))  # row: layer, column: head
print(found.feed_forward.round(3))  # of each layer"""


def contributions(view, shared, trace, asked):
    """What each part puts into one answer directly; asked: ``Target``."""
    maker, call = target(asked, shared.tokenizer)
    body = _CONTRIBUTIONS.format(target=call, unit="the value" if asked.is_regression else "its log-odds")
    return about(view, shared, trace, (f"from bert_tf.explain import contributions, {maker}",), body)


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


def patching(view, shared, trace, other, asked, part, position=None, receiver=None):
    """Vectors of the first input put into the other; asked: ``Target``. part: which vectors, as of ``PatchingResult``, or
    "path" for the paths to a ``Receiver``, None for the answer. position: the only one where heads and the senders of
    paths are put over."""
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


_ASKED = """\
for outcome in ask(bert, trace, variants, top_k={top_k}):
    print(outcome.variant.label, outcome.variant.tokens)
{says}"""
_OF_MASKS = """\
    for one in outcome.masks:
        print(one.position, [(guess.token, round(guess.probability, 3)) for guess in one.predictions])"""
_ONE_SIDE = """\
variants = [left_context(bert, trace, {at}), right_context(bert, trace, {at})]
"""
_LESS = """\
for word, outcome in without_each_word(bert, trace, top_k=1):
    {says}"""
_LESS_MASKS = """\
guess = outcome.masks[0].predictions[0].token
    print(word.text, guess, outcome.changes.mean().round(3), outcome.divergences.mean().round(3))"""
_WORD = """\
word = next(one for one in trace.words() if (one.source, one.index) == {place})  # {text}
variants = [with_word(bert, trace, word, {instead!r})]
"""


def one_side(view, shared, trace, at):
    """What stands before the mask at ``at`` alone, and what stands after it."""
    imports = ("from bert_tf.explain import ask, left_context, right_context",)
    whole = (
        f"whole = next(one for one in bert.fill_mask(trace, top_k={view.top_k}) if one.position == {at})\n"
        "print([(guess.token, round(guess.probability, 3)) for guess in whole.predictions])\n"
    )
    return about(view, shared, trace, imports, whole + _ONE_SIDE.format(at=at) + _outcomes(view, trace))


def a_word_less(view, shared, trace):
    """Every word left out once."""
    pair = _pair(trace)
    says = [_LESS_MASKS] if trace.masks else []
    says += [f"print(word.text, outcome.{pair}, outcome.{pair}_change)"] if pair else []
    return about(
        view, shared, trace, ("from bert_tf.explain import without_each_word",), _LESS.format(says="\n    ".join(says))
    )


def another_word(view, shared, trace, word, instead):
    """A ``WordSpan`` of the trace changed for another word."""
    text = word.text if word.text.isprintable() else "the word"
    body = _WORD.format(place=(word.source, word.index), text=text, instead=instead)
    imports = ("from bert_tf.explain import ask, with_word",)
    return about(view, shared, trace, imports, body + _outcomes(view, trace))


def swapped_texts(view, shared, trace):
    """The second text first."""
    body = "variants = [swapped(bert, trace)]\n" + _outcomes(view, trace)
    return about(view, shared, trace, ("from bert_tf.explain import ask, swapped",), body)


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


def whatif(view, shared, kind, *shown):
    """The text changed: the function called ``kind`` of this module writes the lines."""
    write = {
        "sides": one_side,
        "less": a_word_less,
        "word": another_word,
        "swap": swapped_texts,
        "pairs": pairs,
    }[kind]
    return write(view, shared, *shown)
