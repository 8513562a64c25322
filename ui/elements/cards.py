"""The cards of the bars component: predictions at masks, and classes. Does not import Streamlit."""

import dataclasses

from bert_tf.plots.numbers import percent

_UNKNOWN = ("[UNK]", "<unk>")  # what tokenizers write for a word outside the vocabulary


def cards(answers, number_from=None, shared=None):
    """One card for each mask.

    Args:
        answers: ``MaskPrediction``s, in the order to show them.
        number_from: the number of the step that filled the first mask, where the masks were filled one after
            another: each card then shows its step. None: each card shows its token position.
        shared: dict from position to the set of tokens that another model also predicts. Predictions that are not
            in the set of their mask are marked. None for no marks.
    """
    return [
        _card(answer, step if number_from is not None else None, (shared or {}).get(answer.position))
        for step, answer in enumerate(answers, start=number_from or 0)
    ]


def with_top_k(answers, top_k):
    """``MaskPrediction``s with at most ``top_k`` predictions each."""
    return [dataclasses.replace(answer, predictions=answer.predictions[:top_k]) for answer in answers]


def class_card(now, was):
    """A card of the class probabilities before and after a change of the model or its input.

    It has the ten classes with the highest probability, before or after.

    Args:
        now, was: dicts from each class to its probability, after and before.
    """
    likeliest = sorted(now, key=lambda label: -max(now[label], was[label]))[:10]
    return {
        "position": 0,
        "title": "The class",
        "note": "",
        "foot": "",
        "predictions": [
            {"id": index, "text": label, "p": now[label], "was": was[label], "right": False}
            for index, label in enumerate(sorted(likeliest, key=lambda label: -now[label]))
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
                "id": int(prediction.id),
                "text": prediction.token,
                "p": float(prediction.probability),
                "right": prediction.token == answer.original,
                "alone": shared is not None and prediction.token not in shared,
            }
            for prediction in answer.predictions
        ],
        "asked": [
            {
                "id": target.id,
                "text": target.token,
                "p": target.probability,
                "right": target.token == answer.original,
                "rank": f"{target.rank:,}",
            }
            for target in answer.targets
        ],
    }


def _foot(answer):
    if answer.original is None:
        return "Typed mask: there is no original to compare with."
    if answer.original in _UNKNOWN:
        return "The original is not in the vocabulary."
    if answer.original_rank == 1:
        return f"The original is the first prediction, with {percent(answer.original_probability)}."
    return f"The original ranks {answer.original_rank:,}, with {percent(answer.original_probability)}."


def ordinal(number):
    """1 -> "1st", 2 -> "2nd", 11 -> "11th"."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
