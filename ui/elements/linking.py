"""Tokens of two models that stand at the same place of a text. Does not import Streamlit."""


def linked_tokens(own, chips):
    """How a component of one model's tokens is linked with the chips of a page, which are another model's tokens.

    Args:
        own: ``Trace`` or encoding of the component's model. chips: that of the chips' model, of the same texts.

    Returns: dict of lists of token positions, None for tokens without a counterpart: "chips" has for each token of
        ``own`` the chip at its first character, "own" for each chip the token at its first character.
    """
    return {"chips": _counterparts(own, chips), "own": _counterparts(chips, own)}


def _counterparts(one, other):
    """For each token of ``one`` the position of the token of ``other`` at its first character, or None."""
    added = iter([position for position, source in enumerate(other.sources) if source is None])
    places = {
        (source, character): position
        for position, (source, offset) in enumerate(zip(other.sources, other.offsets))
        if source is not None
        for character in range(*offset)
    }
    return [
        next(added, None) if source is None else places.get((source, offset[0]))
        for source, offset in zip(one.sources, one.offsets)
    ]
