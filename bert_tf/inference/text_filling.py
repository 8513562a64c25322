"""Putting predicted tokens into the user's own text."""


def fill_text(trace, tokens):
    """The user's texts with tokens put in at some positions.

    Args:
        trace: a `Trace`.
        tokens: dict from token position to token in BERT's spelling (`Tokenizer.spellings`), such as
            {7: "China"} or {8: "##ing"}.
    Returns:
        (text_a, text_b); `text_b` is None if the trace has none. Everything not replaced stays as the user
        wrote it.
    """
    texts = {"a": trace.text_a, "b": trace.text_b}
    # From the last to the first, so that the offsets of those still to come stay true.
    for position in sorted(tokens, reverse=True):
        source = trace.sources[position]
        if source is not None:
            start, end = trace.offsets[position]
            texts[source] = _replaced(texts[source], start, end, tokens[position])
    return texts["a"], texts["b"]


def _replaced(text, start, end, token):
    before, after = text[:start], text[end:]
    if token.startswith("##"):
        return before.rstrip() + token[2:] + after
    # A whole word where a piece stood ("play" + "##ing") would otherwise run into its neighbour.
    if before[-1:].isalnum() and token[:1].isalnum():
        before += " "
    return before + token + after
