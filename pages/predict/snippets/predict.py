"""The Python code for what the page predict shows."""

from ui.widgets.snippet_parts import about

_EACH = """\
for mask in bert.fill_mask(trace, top_k={top_k}{targets}):
    print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions]){asked_targets}"""
_SUREST_FIRST = """\
filled = bert.fill_jointly(trace, top_k={top_k}{targets})
for mask in filled.steps:  # the most confident first, each with those before it in place
    print(mask.position, [(one.token, round(one.probability, 3)) for one in mask.predictions]){asked_targets}
print(filled.text_a, filled.text_b)"""
_ASKED = """
    print([(one.token, one.rank, round(one.probability, 5)) for one in mask.targets])"""
_ATTENTION = """\
weights = trace.attentions{weights}  # layer and head counted from 0; row a token that looks, column one looked at
for token, row in zip(trace.tokens, weights):
    print(token, "->", trace.tokens[row.argmax()], row.max().round(3))"""
_SEVERAL_PIECES = """\
for score in bert.score_words(trace, {words}):  # words of several pieces
    print(score.word, score.pieces, round(score.pseudo_log_likelihood, 3))"""
_REPLACED = """\
for token, score in zip(trace.tokens, trace.replaced):  # the probability that it was put there
    print(token, score.round(3))"""


def snippet(view, shared, trace, targets=(), drawn=None, of_pieces=()):
    """Every answer that the model has: predictions at the masks, the score of a pair, a score for each token.

    Args:
        targets: words that are asked about at the masks. of_pieces: those of several pieces.
        drawn: (layer, head) whose attention is drawn; the head is None for the mean. None if none is drawn.
    """
    parts = []
    if trace.masks and trace.logits is not None:
        lines = _SUREST_FIRST if view.fill == "joint" and len(trace.masks) > 1 else _EACH
        more = (
            {"targets": f", targets={list(targets)}", "asked_targets": _ASKED}
            if targets
            else {"targets": "", "asked_targets": ""}
        )
        parts.append(lines.format(top_k=view.top_k, **more))
        parts += [_SEVERAL_PIECES.format(words=list(of_pieces))] if of_pieces else []
    parts += [f"print(trace.{head})" for head in ("nsp", "sop") if getattr(trace, head) is not None]
    parts += [_REPLACED] if trace.replaced is not None else []
    if drawn is not None:
        layer, head = drawn
        weights = f"[{layer}].mean(axis=0)" if head is None else f"[{layer}, {head}]"
        parts.append(_ATTENTION.format(weights=weights))
    return about(view, shared, trace, (), "\n".join(parts) or "print(trace.tokens)")
