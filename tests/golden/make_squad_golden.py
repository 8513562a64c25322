"""Makes `squad_scores.json`: predictions, answers, and torchmetrics' exact match and F1 of each and of all.

pip install torchmetrics==1.9.0
python tests/golden/make_squad_golden.py
"""

import json
from pathlib import Path

import numpy as np
from torchmetrics.functional.text import squad

WORDS = "the a an The U.S. Denver denver, Broncos 1,000 of “quoted” it's - new York é".split()


def scores(predictions, answers):
    """torchmetrics' figures of these questions."""
    actual = squad(
        [{"id": key, "prediction_text": text} for key, text in predictions.items()],
        [{"id": key, "answers": {"text": texts, "answer_start": [0] * len(texts)}} for key, texts in answers.items()],
    )
    return {name: float(value) for name, value in actual.items()}


def main():
    """Draws 60 questions and writes what torchmetrics says of them."""
    rng = np.random.default_rng(0)
    predictions, answers = {}, {}
    for key in map(str, range(60)):
        # No text is of articles and punctuation alone: there the scripts of 1.1 and 2.0 differ.
        predictions[key], *answers[key] = (
            " ".join([*rng.choice(WORDS, rng.integers(0, 5)), str(rng.choice(["left", "Right!"]))])
            for _ in range(rng.integers(2, 5))
        )
    single = {key: scores({key: predictions[key]}, {key: answers[key]}) for key in answers}
    content = {"predictions": predictions, "answers": answers, "single": single, "all": scores(predictions, answers)}
    path = Path(__file__).with_name("squad_scores.json")
    path.write_text(json.dumps(content, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
