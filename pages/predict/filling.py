"""Putting a predicted token into the visitor's text, and keeping the other masks where they were."""

import dataclasses

from bert_tf.inference.text_filling import fill_text
from ui.elements.mask_chips import mask_position_at, token_positions, word_positions


def filled(view, shared, trace, position, token_id):
    """The view with the token ``token_id`` written where ``position`` is masked.

    The other pieces of a masked word become typed [MASK]s: the word they belonged to is gone.

    Args:
        view: the view that ``trace`` was made of.
        shared: the model, for its tokenizer.
        trace: what the visitor saw when pressing.
        position, token_id: what was pressed; checked here, as it comes from a browser.

    Returns:
        The new view; the old one if nothing is masked there.
    """
    tokenizer = shared.tokenizer
    if position not in trace.masks or not 0 <= token_id < tokenizer.vocab_size:
        return view
    spot = mask_position_at(trace, position, view.masks)
    written = {
        other: tokenizer.id_to_token(tokenizer.mask_id) for other in (token_positions(trace, [spot]) if spot else ())
    }
    written[position] = tokenizer.spellings[token_id]
    a, b = fill_text(trace, written)
    source, word, _ = word_positions(trace)[position]
    before, after = _words(trace, source), _words(shared.encode(a, b or ""), source)
    masks = []
    for one in view.masks:
        if one == spot:
            continue
        # A text that grew or shrank by a word carries the masks behind it along.
        moved = after - before if one.source == source and one.word > word else 0
        masks.append(dataclasses.replace(one, word=max(one.word + moved, 0)))
    return dataclasses.replace(view, a=a, b=b or "", masks=tuple(sorted(masks)))


def _words(encoding, source):
    return max((word for word, side in zip(encoding.word_ids, encoding.sources) if side == source), default=-1) + 1
