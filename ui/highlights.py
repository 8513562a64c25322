"""The visitor's texts cut into words with scores, for the marks component. No Streamlit."""

import numpy as np


def parts(trace, scores, target, unit="nats"):
    """What the marks component draws: the texts as they were typed, each word with its score.

    Args:
        trace: a ``Trace``. scores: ``WordScore``s. target: ``Target``.
        unit: of the scores.

    Returns:
        dict from "a" and "b" to lists of parts; spaces between words are parts without a ``tip``.
    """
    strongest = max((abs(one.score) for one in scores), default=0.0) or 1.0
    found = {"a": []}
    for source, text in (("a", trace.text_a), ("b", trace.text_b)):
        if text is None:
            continue
        drawn, end = [], 0
        for one in (one for one in scores if one.word.source == source):
            if one.word.start > end:
                drawn.append({"text": text[end : one.word.start]})
            drawn.append(_word(trace, one, target, strongest, unit))
            end = one.word.end
        found[source] = [*drawn, {"text": text[end:]}]
    return found


def _word(trace, one, target, strongest, unit):
    hidden = any(position in trace.masks for position in one.word.positions)
    said = f"hidden: {one.word.text}" if hidden else f"{one.word.text}: {one.score:+.3f} {unit}"
    return {
        "text": one.word.text,
        "tip": said,
        "shade": round(float(0.5 + 0.5 * np.clip(one.score / strongest, -1, 1)), 3),
        "hidden": hidden,
        "asked": target.position in one.word.positions,
    }
