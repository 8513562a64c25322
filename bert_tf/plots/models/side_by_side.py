"""Two models, or two texts, side by side, drawn."""

from bert_tf.errors import InputError
from bert_tf.plots.models.compare import answers_by_depth, depth_profile, difference_map
from bert_tf.plots.panels import answer_panels
from bert_tf.plots.theme import apply_theme, escape

_QUESTIONS = {"is_next": "next sentence", "in_order": "sentence order", "class": "class"}
_ANSWERS = {"is_next": "B follows A", "in_order": "A and B in order"}


def answers(compared, dark=False):
    """What both sides answer, a panel a question; where there is none, the entropies.

    Args:
        compared: a `ComparedAnswers`. dark: for a dark page.
    """
    panels, replaced = [], ([], [])
    for question, position_a, position_b, *both in compared.answers():
        if question == "replaced":
            for bars, ((token, score),) in zip(replaced, both):
                bars.append({"token": f"{position_a}: {token}", "probability": score})
            continue
        title = _QUESTIONS.get(question) or " | ".join(
            dict.fromkeys(f"token {position}" for position in (position_a, position_b))
        )
        panels.append((title, *([_bar(question, *one) for one in side] for side in both)))
    if replaced[0]:
        panels.append(("replaced tokens", *replaced))
    if not panels:
        return entropies(compared, dark)
    return apply_theme(answer_panels(panels, compared.names), dark, 120 + 230 * len(panels))


def _bar(question, token, probability):
    return {"token": _ANSWERS.get(question, token), "probability": probability}


def answers_by_layer(compared, dark=False):
    """The first mask: each side's answer through the layers of both; compared: a `SideBySide`."""
    if not compared.lenses:
        raise InputError("The lens follows hidden words: hide one on both sides, in models that predict them.")
    return answers_by_depth(
        {
            f"{name}: {lens.answers[0].token}": lens.answer_probabilities[0]
            for name, lens in zip(compared.names, compared.lenses[0])
        },
        dark,
    )


def entropies(compared, dark=False):
    """The mean entropy of a row of either side's attention maps, layer by layer."""
    sides = zip(compared.names, (compared.a, compared.b))
    profiles = {escape(name): side.entropy for name, side in sides if side.entropy is not None}
    return depth_profile(profiles, "mean entropy of a row, bits", dark)


def attention_difference(compared, dark=False):
    """One attention map less the other; compared: a `SideBySide`."""
    if compared.attention is None:
        lengths = f"{len(compared.a.tokens)} and {len(compared.b.tokens)}"
        raise InputError(f"The difference needs inputs of as many tokens; these have {lengths}.")
    tokens = [a if a == b else f"{a} | {b}" for a, b in zip(compared.a.tokens, compared.b.tokens)]
    return difference_map(compared.attention.difference, tokens, dark)
