"""From masked spots to token positions and to the chips that show them. No Streamlit."""

from bert_tf.plots.attention.pooled_maps import token_sources
from ui.shell.view import MaskPosition


def word_positions(encoding):
    """Where every token stands: a list, one entry a token, of (source, word, piece), or None.

    None stands for the special tokens that the model adds.
    """
    found, seen = [], {}
    for source, word in zip(encoding.sources, encoding.word_ids):
        if source is None or word is None:
            found.append(None)
            continue
        piece = seen.get((source, word), 0)
        seen[source, word] = piece + 1
        found.append((source, word, piece))
    return found


def token_positions(encoding, mask_positions):
    """Token positions of the masked spots, ascending; spots that point at nothing are passed over."""
    wanted = set(mask_positions)
    return tuple(
        position
        for position, place in enumerate(word_positions(encoding))
        if place and (MaskPosition(place[0], place[1]) in wanted or MaskPosition(*place) in wanted)
    )


def mask_position_at(encoding, position, mask_positions):
    """The spot of ``mask_positions`` that masks the token at ``position``, or None."""
    place = word_positions(encoding)[position]
    if place is None:
        return None
    for spot in (MaskPosition(place[0], place[1]), MaskPosition(*place)):
        if spot in mask_positions:
            return spot
    return None


def chips(encoding, mask_positions, whole, mask_id):
    """What the chip strip shows, in reading order.

    Args:
        encoding: the packed pair.
        mask_positions: what is masked now.
        whole: whether a press masks the whole word or one piece.
        mask_id: id of the mask token, to tell masks the visitor typed.
    Returns:
        A list of dicts: ``kind`` is "special", "typed", "word" or "piece"; ``side`` as ``token_sources`` has
        it; ``spot`` what a press toggles (None where nothing can be); ``was`` the token as it stands in the text.
    """
    where = word_positions(encoding)
    pieces = {}
    for place in filter(None, where):
        pieces[place[:2]] = pieces.get(place[:2], 0) + 1
    shown = []
    for position, (token, side, place) in enumerate(zip(encoding.tokens, token_sources(encoding.sources), where)):
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
            masked = mask_position_at(encoding, position, mask_positions)
            single = pieces[place[:2]] == 1
            press = masked or (MaskPosition(place[0], place[1]) if whole or single else MaskPosition(*place))
            chip |= {
                "kind": "piece" if place[2] else "word",
                "spot": str(press),
                "masked": masked is not None,
            }
        shown.append(chip)
    return shown


def truncated_texts(encoding, a, b):
    """(text a, text b) as far as ``encoding`` holds them."""
    if not encoding.truncated:
        return a, b
    ends = {"a": 0, "b": 0}
    for source, offset in zip(encoding.sources, encoding.offsets):
        if source:
            ends[source] = offset[1]
    return a[: ends["a"]], b[: ends["b"]]
