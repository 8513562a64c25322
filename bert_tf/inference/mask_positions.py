"""From what a caller asks to mask (positions, words, typed "[MASK]") to token positions.

Dimension legend: T tokens.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral

from bert_tf.errors import InputError, MaskPositionError, MaskTruncated, WordNotFound
from bert_tf.inference.words import Word, words_of

LEVELS = ("token", "word")


def resolve_masks(encoding, text_a, text_b, mask, level, tokenizer):
    """Say which token positions are to be predicted.

    Args:
        encoding: the packed input, `Encoding` of T tokens.
        text_a, text_b: the user's texts (`text_b` may be None).
        mask: positions (int), words (str), `Word`s, or any mixture; a single one may stand alone. A str masks
            every piece of the first word spelled so (upper and lower case alike if nothing is spelled exactly
            so); given twice, the first two such words.
        level: "token" masks a position alone, "word" every piece of the word it belongs to.
        tokenizer: the tokenizer that made `encoding`.
    Returns:
        sorted tuple of positions, those where the user typed "[MASK]" included.
    Raises:
        MaskPositionError, WordNotFound, MaskTruncated, InputError.
    """
    if level not in LEVELS:
        raise InputError(f'level must be "token" or "word", not {level!r}.')
    texts = {"a": text_a, "b": text_b}
    typed = [p for p, i in enumerate(encoding.token_ids) if i == tokenizer.mask_id]
    if encoding.truncated.tokens_a or encoding.truncated.tokens_b:
        _refuse_cut_masks(len(typed), texts, tokenizer, encoding.length)
    positions = set(typed)
    items = _as_items(mask)
    words = words_of(encoding, text_a, text_b) if items else ()
    asked_before = Counter()
    for item in items:
        if isinstance(item, str):
            matches = _spelled(item, words, texts)
            if len(matches) <= asked_before[item]:
                raise _not_found(item, asked_before[item], words, encoding, texts, tokenizer)
            positions.update(matches[asked_before[item]])
            asked_before[item] += 1
        elif isinstance(item, Word):
            positions.update(_numbered(item, words))
        elif isinstance(item, Integral) and not isinstance(item, bool):
            positions.update(_at(int(item), level, words, encoding))
        else:
            raise InputError(f"Cannot mask {item!r:.60}: give a token position (int), a word (str) or a Word.")
    return tuple(sorted(positions))


def _as_items(mask):
    if mask is None:
        return ()
    if isinstance(mask, (str, Word, Mapping)) or not isinstance(mask, Iterable):
        return (mask,)
    return tuple(mask)


def _at(position, level, words, encoding):
    if not 0 <= position < encoding.length:
        raise MaskPositionError(
            f"There is no token {position} to mask: this input has {encoding.length} tokens, "
            f"and those of the text are 1 to {encoding.length - 2}."
        )
    if encoding.word_ids[position] is None:
        raise MaskPositionError(
            f"Token {position} is {encoding.tokens[position]}, which the model adds itself: "
            "only tokens of the text can be masked."
        )
    if level == "token":
        return (position,)
    return next(word.positions for word in words if position in word.positions)


def _numbered(asked, words):
    for word in words:
        if (word.source, word.index) == (asked.source, asked.index):
            return word.positions
    count = sum(word.source == asked.source for word in words)
    if not count:
        raise WordNotFound(f"There is no text {asked.source!r} to mask a word of.")
    raise WordNotFound(f"Text {asked.source!r} has no word {asked.index}: its words are numbered 0 to {count - 1}.")


def _spelled(spelling, words, texts):
    """Positions of every run of words spelled so; more than one word for "don't" or "New York"."""
    spelling = spelling.strip()
    for same in (str.__str__, str.casefold):
        found = []
        for first, word in enumerate(words):
            run = []
            for following in words[first:]:
                if following.source != word.source or following.end - word.start > 2 * len(spelling):
                    break
                run.extend(following.positions)
                if same(texts[word.source][word.start : following.end]) == same(spelling):
                    found.append(tuple(run))
                    break
        if found:
            return found
    return []


def _not_found(spelling, already, words, encoding, texts, tokenizer):
    if encoding.truncated.tokens_a or encoding.truncated.tokens_b:
        whole = _whole_words(texts, tokenizer)
        if len(_spelled(spelling, whole, texts)) > already:
            return MaskTruncated(
                f"The word {spelling!r} is in the part that was cut off: "
                f"this model reads {encoding.length} tokens. Shorten the text."
            )
    if already:
        return WordNotFound(f"{spelling!r} was asked for {already + 1} times, but the text has it {already} times.")
    close = get_close_matches(spelling, dict.fromkeys(word.text for word in words), n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    return WordNotFound(f"The word {spelling!r} is not in the text.{hint}")


def _whole_words(texts, tokenizer):
    words = []
    for source, text in texts.items():
        if text is not None:
            words.extend(words_of(_Uncut(tokenizer.tokenize(text), source), text, text))
    return words


class _Uncut:
    """A text's tokens with nothing cut off, seen as an encoded input."""

    def __init__(self, tokens, source):
        self.offsets, self.word_ids = tokens.offsets, tokens.word_ids
        self.sources = (source,) * len(tokens.word_ids)


def _refuse_cut_masks(kept, texts, tokenizer, length):
    typed = sum(
        int((tokenizer.tokenize(text).ids == tokenizer.mask_id).sum()) for text in texts.values() if text is not None
    )
    if typed > kept:
        raise MaskTruncated(
            f"{typed - kept} of the {typed} [MASK] in the text stand in the part that was cut off: "
            f"this model reads {length} tokens. Shorten the text."
        )
