"""The data of the marks component: the visitor's texts cut into words with shades. Does not import Streamlit."""

import numpy as np

from ui.widgets.formatting import isolated, signed


def word_highlights(trace, scores, target, unit="nats", least=0.0):
    """The texts with a score for each word.

    Args:
        trace: a ``Trace``. scores: ``WordScore``s. target: ``Target``.
        unit: of the scores. least: the score from which on a word may have the strongest shade.

    Returns:
        dict from "a" and "b" to lists of parts; spaces between words are parts without a ``tip``.
    """
    strongest = max([least, *(abs(scored.score) for scored in scores)]) or 1.0
    words = [
        (
            scored.word,
            f"{signed(scored.score, 3)} {unit}",
            0.5 + 0.5 * np.clip(scored.score / strongest, -1, 1),
            target.position in scored.word.positions,
        )
        for scored in scores
    ]
    return _parts(trace, words)


def reduction_highlights(trace, reduction, describe):
    """The texts with the order in which an ``InputReduction`` removes the words.

    A word that is removed early has a pale shade; the remaining words have the strongest.

    Args:
        trace: a ``Trace``. reduction: ``InputReduction``. describe: callable (log-probability) -> str.

    Returns:
        see ``word_highlights``.
    """
    order = {removal.word: (number, removal.log_probability) for number, removal in enumerate(reduction.removed, 1)}
    words = []
    for word in trace.words():
        number, score = order.get(word, (0, 0.0))
        tip = f"removed as number {number}; then the answer has {describe(score)}" if number else "not removed"
        shade = 0.6 * (number - 1) / len(order) if number else 1.0
        words.append((word, tip, shade, reduction.target.position in word.positions))
    return _parts(trace, words)


def hotflip_highlights(trace, hotflip, describe):
    """The texts with the effect of a ``HotFlip`` on each word.

    A word has a strong shade if its most harmful replacement lowers the answer's score a lot.

    Args:
        trace: a ``Trace``. hotflip: ``HotFlip``. describe: callable (``Flip``) -> str.

    Returns:
        see ``word_highlights``.
    """
    worst = {}
    for flip in hotflip.tried:  # the most harmful flip comes first
        worst.setdefault(flip.word, flip)
    most = max((-flip.change for flip in worst.values()), default=0.0)
    words = []
    for word in trace.words():
        flip = worst.get(word)
        shade = max(0.0, -flip.change / most) if flip and most > 0 else 0.0
        words.append((word, describe(flip) if flip else "not tried", shade, hotflip.target.position in word.positions))
    return _parts(trace, words)


def _parts(trace, words):
    """The parts of both texts; words: (``WordSpan``, its description, its shade, whether it holds the target)."""
    parts_by_side = {"a": []}
    for source, text in (("a", trace.text_a), ("b", trace.text_b)):
        if text is None:
            continue
        parts, end = [], 0
        for word, tip, shade, asked in (item for item in words if item[0].source == source):
            if word.start > end:
                parts.append({"text": text[end : word.start]})
            hidden = any(position in trace.masks for position in word.positions)
            parts.append(
                {
                    "text": word.text,
                    "tip": f"hidden: {word.text}" if hidden else f"{isolated(word.text)}: {tip}",
                    "shade": round(float(shade), 3),
                    "hidden": hidden,
                    "asked": asked,
                }
            )
            end = word.end
        parts_by_side[source] = [*parts, {"text": text[end:]}]
    return parts_by_side


def token_highlights(trace, shades, describe):
    """The texts with a shade for each token.

    Args:
        trace: a ``Trace``. shades: T floats from 0 to 1. describe: callable (position) -> str, a token's description.

    Returns:
        see ``word_highlights``; the parts are tokens.
    """
    parts_by_side = {"a": []}
    for source, text in (("a", trace.text_a), ("b", trace.text_b)):
        if text is None:
            continue
        parts, end = [], 0
        for place in (place for place, side in enumerate(trace.sources) if side == source):
            start, stop = trace.offsets[place]
            if start > end:
                parts.append({"text": text[end:start]})
            name = "hidden" if place in trace.masks else isolated(text[start:stop])
            parts.append(
                {
                    "text": text[max(start, end) : stop],
                    "tip": f"{name}: {describe(place)}",
                    "shade": round(float(shades[place]), 3),
                    "hidden": place in trace.masks,
                }
            )
            end = max(end, stop)
        parts_by_side[source] = [*parts, {"text": text[end:]}]
    return parts_by_side
