"""Writing a predicted token into the visitor's text, with the other masks kept on their words."""

import dataclasses

from bert_tf.inference.text_filling import fill_text
from ui.elements.mask_chips import mask_position_at, token_positions, word_positions


def filled(view, shared, trace, position, token_id):
    """The view with the token ``token_id`` written at the masked ``position``.

    The other tokens of a masked word become typed [MASK]s, as their word no longer exists.

    Args:
        view: the view that ``trace`` was made from.
        shared: the model, for its tokenizer.
        trace: the trace that the page showed when the visitor pressed the token.
        position, token_id: the pressed position and token; checked here, as they come from the browser.

    Returns:
        The new view; the old one if the position is not masked or there is no such token.
    """
    tokenizer = shared.tokenizer
    if position not in trace.masks or not 0 <= token_id < tokenizer.vocab_size:
        return view
    pressed_mask = mask_position_at(trace, position, view.masks)
    written = {
        other: tokenizer.id_to_token(tokenizer.mask_id)
        for other in (token_positions(trace, [pressed_mask]) if pressed_mask else ())
    }
    written[position] = tokenizer.spellings[token_id]
    a, b = fill_text(trace, written, tokenizer)
    source, word, _ = word_positions(trace)[position]
    before, after = _words(trace, source), _words(shared.encode(a, b or ""), source)
    masks = []
    for mask in view.masks:
        if mask == pressed_mask:
            continue
        # The text may have more or fewer words now: masks after the filled word move with their words.
        shift = after - before if mask.source == source and mask.word > word else 0
        masks.append(dataclasses.replace(mask, word=max(mask.word + shift, 0)))
    return dataclasses.replace(view, a=a, b=b or "", masks=tuple(sorted(masks)))


def _words(encoding, source):
    """How many words one of the two texts has."""
    return max((word for word, side in zip(encoding.word_ids, encoding.sources) if side == source), default=-1) + 1
