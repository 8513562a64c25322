"""Mask positions as token positions, and the data of the chip strip. Does not import Streamlit."""

from bert_tf.plots.attention.pooled_maps import token_sources
from ui.shell.view import MaskPosition


def word_positions(encoding):
    """The word and the piece of every token: a list of (source, word, piece), None for the added special tokens."""
    positions, pieces_seen = [], {}
    for source, word in zip(encoding.sources, encoding.word_ids):
        if source is None or word is None:
            positions.append(None)
            continue
        piece = pieces_seen.get((source, word), 0)
        pieces_seen[source, word] = piece + 1
        positions.append((source, word, piece))
    return positions


def words(encoding, text):
    """The words of ``text``, a list of str as ``MaskPosition`` counts them; ``encoding`` has the text as text A."""
    spans = {}
    for source, word, offsets in zip(encoding.sources, encoding.word_ids, encoding.offsets):
        if source == "a":
            start, _ = spans.get(word, offsets)
            spans[word] = (start, offsets[1])
    # A number that no token has is that of an empty word.
    return [text[slice(*spans.get(number, (0, 0)))] for number in range(max(spans, default=-1) + 1)]


def token_positions(encoding, mask_positions):
    """Token positions of the ``MaskPosition``s, ascending; one that is not in the texts is ignored."""
    masked = set(mask_positions)
    return tuple(
        position
        for position, place in enumerate(word_positions(encoding))
        if place and (MaskPosition(place[0], place[1]) in masked or MaskPosition(*place) in masked)
    )


def mask_position_at(encoding, position, mask_positions):
    """The one of ``mask_positions`` that masks the token at ``position``, or None."""
    return _mask_of(word_positions(encoding)[position], mask_positions)


def _mask_of(place, mask_positions):
    if place is None:
        return None
    for spot in (MaskPosition(place[0], place[1]), MaskPosition(*place)):
        if spot in mask_positions:
            return spot
    return None


def chips(encoding, mask_positions, whole, mask_id):
    """The chips of the tokens, in reading order.

    Args:
        encoding: the packed pair.
        mask_positions: ``MaskPosition``s that are masked now.
        whole: whether a press masks the whole word; else it masks one piece.
        mask_id: id of the mask token; a token with this id in the text is a mask that the visitor typed.

    Returns:
        list of dicts: ``position``; ``text``; ``kind`` is "special", "typed", "word" or "piece"; ``side`` as
        ``token_sources`` returns it; ``spot`` is the ``MaskPosition`` that a press toggles, as text (None for a chip
        that cannot be pressed); ``masked``; ``was`` is the token in the text.
    """
    places = word_positions(encoding)
    pieces = {}
    for place in filter(None, places):
        pieces[place[:2]] = pieces.get(place[:2], 0) + 1
    strip = []
    for position, (token, side, place) in enumerate(zip(encoding.tokens, token_sources(encoding.sources), places)):
        chip = {
            "position": position,
            "text": token,
            "was": token,
            "side": side,
            "spot": None,
            "masked": False,
            "kind": "special",
        }
        if place and int(encoding.token_ids[position]) == mask_id:
            chip |= {"kind": "typed", "was": ""}
        elif place:
            masked = _mask_of(place, mask_positions)
            single = pieces[place[:2]] == 1
            press = masked or (MaskPosition(place[0], place[1]) if whole or single else MaskPosition(*place))
            chip |= {
                "kind": "piece" if place[2] else "word",
                "spot": str(press),
                "masked": masked is not None,
            }
        strip.append(chip)
    return strip
