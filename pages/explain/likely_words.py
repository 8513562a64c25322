"""Words that a model expects in the place of another word: what is offered to exchange it for."""

from bert_tf.inference.predictions import fill_mask
from ui.samples import patching_pairs
from ui.session.session_cache import cached

_MOST = 8  # words offered in the place of a word
_TRIED = 2  # words that are tried for the first exchange, which takes two forward passes of them all, at every press
_SHORT = 64  # tokens: in a longer text, whose passes take long, only the longest word is tried, in one pass


def exchange(shared, trace, sides="ab"):
    """A long word of the trace's texts and a likely other one for it: (``WordSpan``, str), or None if there is none.

    Of several words it is the one whose exchange leaves the first hidden word least likely. In a long text it is the
    longest one.

    Args:
        shared: ``SharedModel``. trace: ``Trace``. sides: "a" for a word of text A only.
    """
    words = [word for word in words_in_sight(trace) if word.source in sides]
    is_short = trace.length <= _SHORT and not trace.truncated
    tried = sorted(words, key=lambda word: -len(word.text))[: _TRIED if is_short else 1]
    pairs = [(word, instead) for word, offered in zip(tried, _offered(shared, trace, tried)) for instead in offered[:1]]
    masks = pressed_masks(trace)
    if len(pairs) < 2 or not masks:
        return pairs[0] if pairs else None
    answers = _predict(shared, [(*with_word(trace, *pair), masks) for pair in pairs], 1)
    probabilities = [
        next(mask.original_probability for mask in answer.masks if mask.position == masks[0]) for answer in answers
    ]
    return pairs[probabilities.index(min(probabilities))]


def _predict(shared, rows, top_k):
    """The answers to several (text_a, text_b, positions of the masks), of one forward pass."""
    return shared.run(lambda bert: list(bert.predict_many(rows, len(rows), top_k)))


def words_in_sight(trace):
    """The words of the texts that are not masked."""
    return [word for word in trace.words() if not set(word.positions) & set(trace.masks)]


def with_word(trace, word, instead):
    """The trace's (text_a, text_b) with ``instead`` in the place of ``word``."""
    return tuple(
        text[: word.start] + instead + text[word.end :] if word.source == side else text
        for side, text in (("a", trace.text_a), ("b", trace.text_b))
    )


def suggestions(shared, trace, word):
    """Words that the model predicts in the place of ``word`` and that keep the number of tokens."""
    return _offered(shared, trace, [word])[0]


def _offered(shared, trace, words):
    """The suggestions for each of several words."""
    if "mlm" not in shared.bert.heads:
        return [[] for _ in words]
    by_word = cached("likely_words", (trace,), dict)
    missing = [word for word in words if word not in by_word]
    if len(missing) > 1 and all(len(word.positions) == 1 for word in missing):
        rows = [(trace.text_a, trace.text_b, (*pressed_masks(trace), *word.positions)) for word in missing]
        masks = [answer.masks for answer in _predict(shared, rows, 3 * _MOST)]
        by_word |= {word: _fitting(shared, trace, word, _single(word, one)) for word, one in zip(missing, masks)}
    for word in words:
        if word not in by_word:
            by_word[word] = _fitting(shared, trace, word, _candidates(shared, trace, word))
    return [by_word[word] for word in words]


def _candidates(shared, trace, word):
    hidden = shared.trace(trace.text_a, trace.text_b or "", (*pressed_masks(trace), *word.positions))
    if len(word.positions) == 1:
        return _single(word, fill_mask(hidden, shared.tokenizer, 3 * _MOST))
    filled = {step.position: step.predictions[0].id for step in shared.fill_jointly(hidden, 1).steps}
    return [tuple(filled[position] for position in word.positions)]


def _single(word, masks):
    """The token ids, each a tuple of one, that are predicted in the place of a word of one token."""
    return [(prediction.id,) for mask in masks if mask.position == word.positions[0] for prediction in mask.predictions]


def _fitting(shared, trace, word, candidates):
    """The spellings of those candidates that are a word in the place of ``word``."""
    tokenizer, fitting = shared.tokenizer, []
    for ids in candidates:
        text = "".join(tokenizer.spellings[token_id].removeprefix("##") for token_id in ids)
        ids_in_text = _ids_in_text(shared, trace, word, text)
        # A single token is a whole word if the tokenizer reads its spelling back as the same token. "##ing" and a
        # token for a space are not.
        is_word = ids_in_text == ids if len(ids) == 1 else ids_in_text is not None
        if is_word and ids_in_text != tuple(trace.token_ids[list(word.positions)]) and any(map(str.isalnum, text)):
            fitting.append(text)
    return fitting[:_MOST]


def _ids_in_text(shared, trace, word, instead):
    """The token ids of ``instead`` in the place of ``word``; None if the number of tokens changes."""
    text_a, text_b = with_word(trace, word, instead)
    other = shared.encode(text_a, text_b or "")
    return tuple(other.token_ids[list(word.positions)]) if patching_pairs.aligned(trace, other) else None


def pressed_masks(trace):
    """The positions that are masked by a press, not by a typed [MASK]."""
    return tuple(p for p in trace.masks if trace.original_tokens[p] != trace.tokens[p])
