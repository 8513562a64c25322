"""Predictions at masks as the cards of the bars component. No Streamlit."""

from ui.words import percent


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
    }


def _foot(answer):
    if answer.original is None:
        return "Typed mask: there is no original to compare with."
    if answer.original_rank == 1:
        return f"The original is the first guess, with {percent(answer.original_probability)}."
    return f"The original ranks {answer.original_rank:,}, with {percent(answer.original_probability)}."


def ordinal(number):
    """1 -> "1st", 2 -> "2nd", 11 -> "11th"."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
