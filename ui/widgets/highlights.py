"""The visitor's texts cut into words with colours, for the marks component. No Streamlit."""

import numpy as np


def word_highlights(trace, scores, target, unit="nats"):
    """What the marks component draws: the texts as they were typed, each word with its score.

    Args:
        trace: a ``Trace``. scores: ``WordScore``s. target: ``Target``.
        unit: of the scores.

    Returns:
        dict from "a" and "b" to lists of parts; spaces between words are parts without a ``tip``.
    """
    strongest = max((abs(one.score) for one in scores), default=0.0) or 1.0
    drawn = [
        (
            one.word,
            f"{one.score:+.3f} {unit}",
            0.5 + 0.5 * np.clip(one.score / strongest, -1, 1),
            target.position in one.word.positions,
        )
        for one in scores
    ]
    return _parts(trace, drawn)


def reduction_highlights(trace, found, describe):
    """The same of an ``InputReduction``: the paler a word, the earlier it goes; what stays is strongest.

    Args:
        trace: a ``Trace``. found: ``InputReduction``. describe: callable (log-probability) -> how it is told.
    """
    order = {one.word: (number, one.log_probability) for number, one in enumerate(found.removed, 1)}
    drawn = []
    for word in trace.words():
        number, score = order.get(word, (0, 0.0))
        tip = f"goes as number {number}; then the answer has {describe(score)}" if number else "stays"
        shade = 0.6 * (number - 1) / len(order) if number else 1.0
        drawn.append((word, tip, shade, found.target.position in word.positions))
    return _parts(trace, drawn)


def hotflip_highlights(trace, found, describe):
    """The same of a ``HotFlip``: the stronger a word, the more the worst of its other words costs the answer.

    Args:
        trace: a ``Trace``. found: ``HotFlip``. describe: callable (``Flip``) -> how it is told.
    """
    worst = {}
    for one in found.tried:  # what costs most comes first
        worst.setdefault(one.word, one)
    most = max((-one.change for one in worst.values()), default=0.0)
    drawn = []
    for word in trace.words():
        one = worst.get(word)
        shade = max(0.0, -one.change / most) if one and most > 0 else 0.0
        drawn.append((word, describe(one) if one else "not tried", shade, found.target.position in word.positions))
    return _parts(trace, drawn)


def _parts(trace, words):
    """Both texts cut up; words: (``WordSpan``, what is said of it, its shade, whether it is asked about)."""
    found = {"a": []}
    for source, text in (("a", trace.text_a), ("b", trace.text_b)):
        if text is None:
            continue
        drawn, end = [], 0
        for word, tip, shade, asked in (one for one in words if one[0].source == source):
            if word.start > end:
                drawn.append({"text": text[end : word.start]})
            hidden = any(position in trace.masks for position in word.positions)
            drawn.append(
                {
                    "text": word.text,
                    "tip": f"hidden: {word.text}" if hidden else f"{word.text}: {tip}",
                    "shade": round(float(shade), 3),
                    "hidden": hidden,
                    "asked": asked,
                }
            )
            end = word.end
        found[source] = [*drawn, {"text": text[end:]}]
    return found


def token_highlights(trace, shades, describe):
    """The same of every token by itself, for texts that are not looked at word by word.

    Args:
        trace: a ``Trace``. shades: T floats from 0 to 1. describe: callable (position) -> what is said of a token.
    """
    found = {"a": []}
    for source, text in (("a", trace.text_a), ("b", trace.text_b)):
        if text is None:
            continue
        drawn, end = [], 0
        for place in (place for place, side in enumerate(trace.sources) if side == source):
            start, stop = trace.offsets[place]
            if start > end:
                drawn.append({"text": text[end:start]})
            name = "hidden" if place in trace.masks else text[start:stop]
            drawn.append(
                {
                    "text": text[max(start, end) : stop],
                    "tip": f"{name}: {describe(place)}",
                    "shade": round(float(shades[place]), 3),
                    "hidden": place in trace.masks,
                }
            )
            end = max(end, stop)
        found[source] = [*drawn, {"text": text[end:]}]
    return found
