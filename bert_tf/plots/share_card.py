"""A picture of one input to share: texts, the likeliest words at a mask, the next sentence, one attention map."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from bert_tf.plots.margins import is_wide
from bert_tf.plots.numbers import percent
from bert_tf.plots.theme import CATEGORIES, escape

if TYPE_CHECKING:
    from bert_tf.inference.predictions import MaskPrediction
    from bert_tf.inference.trace import Trace

#: The size of a card in pixels, the one that sites show with a link.
WIDTH, HEIGHT = 1200, 630
#: A picture cannot load a font, so the fonts of the page would be measured, and others drawn.
_FONT = "Helvetica, Arial, sans-serif"
_INK, _PALE, _ACCENT, _GREEN = "#1d2330", "#5b6170", "#2a57c6", "#a6dfcf"
_LEFT, _RIGHT, _BAR = 56, 640, 470  # pixels: the left edge, the end of the text, the width of a full bar
_MOST_TOKENS, _MOST_LINES = 26, 160
_LINE, _LINES = 34, 5  # characters of a line of text, a wide one counts as two; and lines
_SECOND_HALF = "\u2060"  # of a wide character: a word joiner, which has no width
_WRAPPER = textwrap.TextWrapper(_LINE)
# Chinese has no spaces: a line may also end beside a mask or a wide character.
_WRAPPER.wordsep_re = re.compile(rf"(\s+|\[MASK\]|.{_SECOND_HALF})")


def share_card(
    trace: Trace, predictions: tuple[MaskPrediction, ...], weights: np.ndarray, where: str, name: str
) -> go.Figure:
    """One picture of 1200 by 630 pixels to share.

    Left the texts, the three likeliest tokens at the first mask and the prediction for the pair; right the attention
    as lines from the tokens that attend to the tokens attended to, of the first 26 tokens.

    Args:
        trace: Trace.
        predictions: the `MaskPrediction`s of the trace, may be empty.
        weights: float [T, T]. The attention weights that are drawn.
        where: str. Where they stand, such as "layer 11, head 8".
        name: str. The name of the model.
    """
    card = go.Figure()
    card.update_layout(
        width=WIDTH,
        height=HEIGHT,
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        showlegend=False,
        font={"color": _INK, "family": _FONT},
        xaxis={"range": [0, WIDTH], "visible": False, "fixedrange": True},
        yaxis={"range": [HEIGHT, 0], "visible": False, "fixedrange": True},
    )
    below = _texts(card, trace)
    if predictions:
        if len(predictions) > 1:
            _write(card, _LEFT, below + 10, "The first [MASK]:", 18, _PALE)
            below += 20
        below = _bars(card, min(predictions, key=lambda mask: mask.position), below + 14)
    if trace.nsp is not None:
        _write(card, _LEFT, below + 30, f"B follows A: <b>{escape(percent(trace.nsp.is_next))}</b>", 22)
    _attention(card, trace, np.asarray(weights))
    _write(card, _LEFT, HEIGHT - 34, f"{escape(name)} · BERT explorer", 18, _PALE)
    _write(card, WIDTH - 40, HEIGHT - 34, f"Attention, {escape(where)}", 18, _PALE, "right")
    return card


def _write(card, x, y, text, size, colour=_INK, anchor="left"):
    card.add_annotation(x=x, y=y, text=text, showarrow=False, xanchor=anchor, font={"size": size, "color": colour})


def _texts(card, trace):
    """Write the texts with their masks; returns the height below them, in pixels."""
    y = 72
    for source in "ab":
        text = "".join(letter + _SECOND_HALF * is_wide(letter) for letter in _masked_text(trace, source))
        lines = _WRAPPER.wrap(text)
        if len(lines) > _LINES:
            lines = [*lines[: _LINES - 1], lines[_LINES - 1][: _LINE - 2] + " …"]
        for line in lines:
            markup = escape(line.replace(_SECOND_HALF, ""))
            markup = markup.replace("[MASK]", f'<b><span style="color:{_ACCENT}">[MASK]</span></b>')
            _write(card, _LEFT, y, markup, 30, _INK if source == "a" else _PALE)
            y += 40
        y += 8 if lines else 0
    return y


def _masked_text(trace, source):
    """A text with [MASK] in the place of each word that has a masked piece."""
    text = (trace.text_a if source == "a" else trace.text_b) or ""
    for word in reversed(trace.words()):
        if word.source == source and set(word.positions) & set(trace.masks):
            text = f"{text[: word.start]}[MASK]{text[word.end :]}"
    return text


def _bars(card, mask, top):
    for row, prediction in enumerate(mask.predictions[:3]):
        y = top + 46 * row
        colour = _GREEN if prediction.token == mask.original else "#cdd8f3"
        width = max(6, _BAR * prediction.probability)
        card.add_shape(type="rect", x0=_LEFT, x1=_LEFT + width, y0=y, y1=y + 36, fillcolor=colour, line_width=0)
        _write(card, _LEFT + 10, y + 18, escape(prediction.token), 23)
        _write(card, _LEFT + _BAR + 70, y + 18, escape(percent(prediction.probability)), 21, _PALE, "right")
    return top + 46 * len(mask.predictions[:3])


def _attention(card, trace, weights):
    drawn_tokens = min(trace.length, _MOST_TOKENS)
    step = min(30.0, (HEIGHT - 120) / drawn_tokens)
    height = [56 + step * (place + 0.5) for place in range(drawn_tokens)]
    left, right, size = _RIGHT + 150, WIDTH - 160, max(11, min(17, round(step * 0.68)))
    for place, token in enumerate(trace.tokens[:drawn_tokens]):
        text = escape(token if len(token) < 15 else token[:13] + "…")
        _write(card, left - 8, height[place], text, size, anchor="right")
        _write(card, right + 8, height[place], text, size)
    cut = weights[:drawn_tokens, :drawn_tokens]
    strongest = np.argsort(cut, axis=None)[::-1][:_MOST_LINES]
    for row, column in zip(*np.unravel_index(strongest[::-1], cut.shape)):
        weight = float(cut[row, column])
        if weight < 0.02:
            continue
        middle, (start, end) = (left + right) / 2, (height[row], height[column])
        card.add_shape(
            type="path",
            path=f"M {left} {start} C {middle} {start} {middle} {end} {right} {end}",
            line={
                "color": {"a": CATEGORIES[0], "b": CATEGORIES[1]}.get(trace.sources[row], _INK),
                "width": 0.5 + 3.5 * weight,
            },
            opacity=min(1.0, 0.1 + weight),
        )
    if drawn_tokens < trace.length:
        _write(card, left - 8, height[-1] + step, f"first {drawn_tokens} of {trace.length} tokens", 13, _PALE)
