"""Predictions for thirty sentences with a masked word: ten of facts, ten of grammar, ten of everyday life.

    python benchmarks/cloze.py [MODEL ...]

Prints a Markdown table with the five most probable words of each model; words that count as correct are bold. The
sentences were written for this project before any model was tested on them.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MODELS = ("bert-base-cased-embedded", "bert-small-uncased-embedded")

#: Kind -> (sentence, the words that count as correct, in lower case).
SENTENCES = {
    "Facts": (
        ("The capital of Italy is [MASK].", "rome"),
        ("Water is made of hydrogen and [MASK].", "oxygen"),
        ("The Earth goes round the [MASK] once a year.", "sun"),
        ("The Atlantic [MASK] lies between Europe and America.", "ocean"),
        ("Shakespeare wrote plays and [MASK].", "poems poetry sonnets"),
        ("The Berlin [MASK] fell in 1989.", "wall"),
        ("Mozart was a famous [MASK].", "composer musician"),
        ("Tokyo is the largest city in [MASK].", "japan"),
        ("The heart pumps [MASK] through the body.", "blood"),
        ("The First World War began in [MASK].", "1914"),
    ),
    "Grammar": (
        ("The keys to the old house [MASK] on the table.", "were are lay lie"),
        ("The girl who likes the boys [MASK] singing.", "is was likes loves enjoys starts keeps began started"),
        ("She looked at [MASK] in the mirror.", "herself him me them it us"),
        ("If I had known, I would [MASK] stayed at home.", "have"),
        ("He is taller [MASK] his brother.", "than"),
        ("They have lived here [MASK] ten years.", "for"),
        ("This is the man [MASK] wrote the letter.", "who that"),
        ("Neither the cat [MASK] the dog was hungry.", "nor or"),
        ("The books that I bought yesterday [MASK] expensive.", "were are seemed looked"),
        ("She asked [MASK] he wanted some tea.", "if whether"),
    ),
    "Everyday life": (
        ("I was hungry, so I ate a [MASK].", "sandwich meal lot bit banana cake pizza hamburger burger snack pie"),
        ("It was raining, so she opened her [MASK].", "umbrella"),
        ("Please close the [MASK], it is cold in here.", "door window windows doors curtains"),
        ("He drank a cup of [MASK] for breakfast.", "coffee tea milk"),
        ("The children went to [MASK] by bus.", "school town work church"),
        ("She paid for the bread and left the [MASK].", "shop store bakery market"),
        ("He was tired and went to [MASK].", "bed sleep"),
        ("The phone rang, and she [MASK] it.", "answered took heard grabbed ignored"),
        ("In winter the lake is covered with [MASK].", "ice snow"),
        ("The doctor told him to stop [MASK].", "smoking drinking eating working talking"),
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    names = parser.parse_args().models
    import bert_tf

    models = [bert_tf.load(name) for name in names]
    hits = {bert.name: {} for bert in models}
    for kind, sentences in SENTENCES.items():
        print(f"\n## {kind}\n\n| sentence | {' | '.join(bert.name for bert in models)} |")
        print("|---|" + "---|" * len(models))
        for sentence, right in sentences:
            predictions = [_predictions(bert, sentence) for bert in models]
            for bert, words in zip(models, predictions):
                hit = [word.lower() in right.split() for word in words]
                hits[bert.name].setdefault(kind, []).append((hit[0], any(hit)))
            print(f"| {sentence} | {' | '.join(_marked(words, right) for words in predictions)} |")
    print("\n## In all\n\n| | " + " | ".join(f"{name}, first / among five" for name in hits) + " |")
    print("|---|" + "---|" * len(hits))
    for kind in SENTENCES:
        cells = [f"{sum(h for h, _ in rows[kind])} / {sum(h for _, h in rows[kind])}" for rows in hits.values()]
        print(f"| {kind}, of {len(SENTENCES[kind])} | {' | '.join(cells)} |")


def _predictions(bert, sentence):
    (mask,) = bert.predict(sentence, top_k=5).masks
    return [prediction.token for prediction in mask.predictions]


def _marked(words, right):
    return ", ".join(f"**{word}**" if word.lower() in right.split() else word for word in words)


if __name__ == "__main__":
    main()
