"""Figures of two models, or two texts, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.errors import InputError
from bert_tf.plots.models.compare import answers_by_depth, depth_profile, difference_map
from bert_tf.plots.panels import answer_panels
from bert_tf.plots.theme import apply_theme, escape

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.side_by_side import ComparedAnswers, SideBySide


_QUESTIONS = {"is_next": "next sentence", "in_order": "sentence order", "class": "class"}
_ANSWERS = {"is_next": "B follows A", "in_order": "A and B in order"}


def answers(compared: ComparedAnswers, dark: bool = False) -> go.Figure:
    """The predictions of both sides, one panel per question; without predictions the entropies.

    Args:
        compared: `ComparedAnswers`.
        dark: bool. Whether the figure is drawn for a dark page.
    """
    panels: list[tuple] = []
    replaced: tuple[list, list] = [], []
    for question, position_a, position_b, *both in compared.answers():
        if question == "replaced":
            for bars, ((token, score),) in zip(replaced, both):
                bars.append({"token": f"{position_a}: {token}", "probability": score})
            continue
        title = _QUESTIONS.get(question) or " | ".join(
            dict.fromkeys(f"token {position}" for position in (position_a, position_b))
        )
        panels.append((title, *([_bar(question, *answer) for answer in side] for side in both)))
    if replaced[0]:
        panels.append(("replaced tokens", *replaced))
    if not panels:
        return entropies(compared, dark)
    return apply_theme(answer_panels(panels, compared.names), dark, 120 + 230 * len(panels))


def _bar(question, token, probability):
    return {"token": _ANSWERS.get(question, token), "probability": probability}


def answers_by_layer(compared: SideBySide, dark: bool = False) -> go.Figure:
    """The probability of each side's first prediction at the first mask, through the layers of a `SideBySide`."""
    if not compared.lenses:
        raise InputError("The lens follows masked words: mask a word on both sides, with models that predict it.")
    return answers_by_depth(
        {
            f"{name}: {lens.answers[0].token}": lens.answer_probabilities[0]
            for name, lens in zip(compared.names, compared.lenses[0])
        },
        dark,
    )


def entropies(compared: ComparedAnswers, dark: bool = False) -> go.Figure:
    """The mean entropy of a row of each side's attention maps, by layer."""
    sides = zip(compared.names, (compared.a, compared.b))
    profiles = {escape(name): side.entropy for name, side in sides if side.entropy is not None}
    return depth_profile(profiles, "mean entropy of a row, bits", dark)


def attention_difference(compared: SideBySide, dark: bool = False) -> go.Figure:
    """The difference of the attention maps of a `SideBySide`."""
    if compared.attention is None:
        lengths = f"{len(compared.a.tokens)} and {len(compared.b.tokens)}"
        raise InputError(f"The difference needs inputs with equal numbers of tokens; these have {lengths}.")
    tokens = [a if a == b else f"{a} | {b}" for a, b in zip(compared.a.tokens, compared.b.tokens)]
    return difference_map(compared.attention.difference, tokens, dark)
