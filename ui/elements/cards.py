"""Predictions at masks as the cards of the bars component. No Streamlit."""

import dataclasses

from ui.widgets.formatting import percent


def cards(answers, number_from=None, shared=None):
    """One card for each mask.

    Args:
        answers: ``MaskPrediction``s, in the order to show them.
        number_from: None, or "joint" order: the foot then says in which step a mask was filled.
        shared: dict from position to the tokens that another model guesses too; guesses of a mask in it that
            are not among them are marked. None for no marks.
    """
    return [
        _card(answer, step if number_from is not None else None, (shared or {}).get(answer.position))
        for step, answer in enumerate(answers, start=number_from or 0)
    ]


def with_top_k(answers, top_k):
    """``MaskPrediction``s with at most ``top_k`` guesses each."""
    return [dataclasses.replace(one, predictions=one.predictions[:top_k]) for one in answers]


def class_card(now, was, most=10):
    """A card of a classifier's answer, before and after something.

    Args:
        now, was: dicts from each class to its probability. most: classes shown, the likeliest of either.
    """
    shown = sorted(now, key=lambda label: -max(now[label], was[label]))[:most]
    return {
        "position": 0,
        "title": "The class",
        "note": "",
        "foot": "",
        "predictions": [
            {"id": index, "text": label, "p": now[label], "was": was[label], "right": False}
            for index, label in enumerate(sorted(shown, key=lambda label: -now[label]))
        ],
    }


def _card(answer, step, shared):
    title = answer.original if answer.original is not None else "[MASK]"
    return {
        "position": answer.position,
        "title": title,
        "note": f"token {answer.position}" if step is None else f"filled {ordinal(step)}",
        "foot": _foot(answer),
        "predictions": [
            {
                "id": int(one.id),
                "text": one.token,
                "p": float(one.probability),
                "right": one.token == answer.original,
                "alone": shared is not None and one.token not in shared,
            }
            for one in answer.predictions
        ],
        "asked": [
            {
                "id": one.id,
                "text": one.token,
                "p": one.probability,
                "right": one.token == answer.original,
                "rank": f"{one.rank:,}",
            }
            for one in answer.targets
        ],
    }


def _foot(answer):
    if answer.original is None:
        return "Typed mask: there is no original to compare with."
    if answer.original_rank == 1:
        return f"The original is the first prediction, with {percent(answer.original_probability)}."
    return f"The original ranks {answer.original_rank:,}, with {percent(answer.original_probability)}."


def ordinal(number):
    """1 -> "1st", 2 -> "2nd", 11 -> "11th"."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
