"""The Python code for what the page predict shows."""

from ui.widgets.snippet_parts import about, reading_two, script

_EACH = """\
for mask in {bert}.fill_mask({trace}, top_k={top_k}{targets}):
    print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions]){asked_targets}"""
_SUREST_FIRST = """\
filled = {bert}.fill_jointly({trace}, top_k={top_k}{targets})
for mask in filled.steps:  # the most confident first, each with those before it in place
    print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions]){asked_targets}
print(filled.text_a, filled.text_b)"""
_ASKED = """
    print([(one.token, one.rank, round(one.probability, 5)) for one in mask.targets])"""
_ATTENTION = """\
weights = {trace}.attentions{weights}  # layer and head counted from 0; row a token that looks, column one looked at
for token, row in zip({trace}.tokens, weights):
    print(token, "->", {trace}.tokens[row.argmax()], row.max().round(3))"""
_SEVERAL_PIECES = """\
for score in {bert}.score_words({trace}, {words}):  # words of several pieces
    print(score.word, score.pieces, round(score.pseudo_log_likelihood, 3))"""
_REPLACED = """\
for token, score in zip({trace}.tokens, {trace}.replaced):  # the probability that it was put there
    print(token, score.round(3))"""

_NAMES = ("bert", "trace"), ("second", "other")  # of the variables: a model and its trace


def snippet(view, *sides):
    """Every answer that a model has, or each of two: predictions at the masks, the score of a pair, a score for each
    token.

    Args:
        sides: for each model (its ``SharedModel``, its trace, the words that are asked about at the masks, those of
            several pieces, what is drawn). What is drawn: (layer, head) whose attention is; the head is None for the
            mean. None if none is drawn.
    """
    answers = [_answers(view, *names, *side[1:]) for names, side in zip(_NAMES, sides)]
    models, traces, *_ = zip(*sides)
    if len(sides) == 1:
        return about(view, models[0], traces[0], (), *answers)
    read = reading_two(view, [shared.name for shared in models], traces)
    titled = (f"print({variable}.model)\n{answer}" for (_, variable), answer in zip(_NAMES, answers))
    return script((), read, *titled)


def _answers(view, bert, variable, trace, targets, of_pieces, drawn):
    """The lines that print the answers of one model; ``bert`` and ``variable``: the names of it and of its trace."""
    names, parts = {"bert": bert, "trace": variable}, []
    if trace.masks and trace.logits is not None:
        lines = _SUREST_FIRST if view.fill == "joint" and len(trace.masks) > 1 else _EACH
        more = (
            {"targets": f", targets={list(targets)}", "asked_targets": _ASKED}
            if targets
            else {"targets": "", "asked_targets": ""}
        )
        parts.append(lines.format(top_k=view.top_k, **names, **more))
        parts += [_SEVERAL_PIECES.format(words=list(of_pieces), **names)] if of_pieces else []
    parts += [f"print({variable}.{head})" for head in ("nsp", "sop") if getattr(trace, head) is not None]
    parts += [_REPLACED.format(**names)] if trace.replaced is not None else []
    if drawn is not None:
        layer, head = drawn
        weights = f"[{layer}].mean(axis=0)" if head is None else f"[{layer}, {head}]"
        parts.append(_ATTENTION.format(weights=weights, **names))
    return "\n".join(parts) or f"print({variable}.tokens)"
