"""Insertion of predicted tokens into the user's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tokenizers import normalizers

from bert_tf.tokenizers.base import bert_words

if TYPE_CHECKING:
    from bert_tf.inference.trace import Trace
    from bert_tf.tokenizers.base import BaseTokenizer

# Leaves out the characters that BERT does not read, such as U+0085.
_READ = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)


def fill_text(trace: Trace, tokens: Mapping[int, str], tokenizer: BaseTokenizer) -> tuple[str, str | None]:
    """Return the user's texts with the tokens at some positions replaced.

    Args:
        trace: `Trace`. The texts and offsets.
        tokens: dict of token position -> token in BERT's spelling (`Tokenizer.spellings`), such as {7: "China"} or
            {8: "##ing"}.
        tokenizer: tokenizer that made the trace.

    Returns:
        (text_a, text_b); `text_b` is None if the trace has no second text. The rest of the text is unchanged, but for
        spaces between words that would be read as one: "[MASK]ing" with "dog" is "dog ing".
    """
    texts: dict[str, Any] = {"a": trace.text_a, "b": trace.text_b}
    changed_from: dict[str, int] = {}
    # From the last to the first position, so that the earlier offsets stay valid.
    for position in sorted(tokens, reverse=True):
        source = trace.sources[position]
        if source is not None:
            start, end = trace.offsets[position]
            # Several pieces of one letter share its span: the last of them takes its place.
            end = min(end, changed_from.get(source, end))
            changed_from[source] = start
            # A token that is not replaced continues this one, or is a word of its own, as it was read.
            following = tokens.get(position + 1) or tokenizer.spellings[int(trace.original_ids[position + 1])]
            before = trace.offsets[position - 1]
            is_apart = before is None or before[1] < start
            texts[source] = _replaced(texts[source], start, end, tokens[position], following, is_apart)
    return texts["a"], texts["b"]


def _replaced(text, start, end, token, following, is_apart):
    before, after = text[:start], text[end:]
    if token.startswith("##"):
        # The space before the first of several pieces of one letter stays.
        before, token = before.rstrip() if is_apart else before, token[2:]
    # A word that replaces a piece ("##ing" in "playing") needs a space before it.
    elif _join(_first_read(reversed(before)), token[:1]):
        before += " "
    if not following.startswith("##") and _join(token[-1:], _first_read(after)):
        after = f" {after}"
    return before + token + after


def _first_read(characters):
    """The first character that BERT reads; "" if there is none."""
    return next((character for character in characters if _READ.normalize_str(character)), "")


def _join(character, following):
    """Whether two characters side by side belong to one word, as in "ab"; an emoji and a combining mark join too."""
    return bool(character and following) and bert_words(character + following) == [(0, 2)]
