"""Insertion of predicted tokens into the user's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tokenizers import normalizers

if TYPE_CHECKING:
    from bert_tf.inference.trace import Trace

# It puts spaces around CJK ideographs, and changes nothing else.
_PARTED = normalizers.BertNormalizer(clean_text=False, strip_accents=False, lowercase=False)


def fill_text(trace: Trace, tokens: Mapping[int, str]) -> tuple[str, str | None]:
    """Return the user's texts with the tokens at some positions replaced.

    Args:
        trace: `Trace`. The texts and offsets.
        tokens: dict of token position -> token in BERT's spelling (`Tokenizer.spellings`), such as {7: "China"} or
            {8: "##ing"}.

    Returns:
        (text_a, text_b); `text_b` is None if the trace has no second text. The rest of the text is unchanged.
    """
    texts: dict[str, Any] = {"a": trace.text_a, "b": trace.text_b}
    # From the last to the first position, so that the earlier offsets stay valid.
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
    # A word that replaces a piece ("##ing" in "playing") needs a space before it.
    if _joins(before[-1:]) and _joins(token[:1]):
        before += " "
    return before + token + after


def _joins(character):
    """Whether a character makes a word with its neighbours: a CJK ideograph is a word of its own."""
    return character.isalnum() and _PARTED.normalize_str(character) == character
