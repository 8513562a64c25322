"""Scores models on a hundred everyday sentences with a masked word.

    python benchmarks/everyday.py [MODEL ...] [--each] [--json]

`everyday.tsv` has a sentence and the words that count as correct on each line. The sentences were written for this
project before any model was tested on them. A model is right at once if its likeliest word is correct; "repeats" counts
the sentences whose likeliest word stands in the sentence already.
"""

import argparse
import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MODELS = ("bert-base-cased-embedded", "bert-small-uncased-embedded")


def read_sentences():
    """The list. Returns: list of (sentence, list of the correct words in lower case)."""
    lines = Path(__file__).with_name("everyday.tsv").read_text(encoding="utf-8").splitlines()
    return [(sentence, words.split()) for sentence, words in (line.split("\t") for line in lines)]


def score(bert, sentences):
    """What a model fills in.

    Args: bert: a `Bert`. sentences: as `read_sentences` returns them.

    Returns: dict "model", "sentences", "first", "among_five", "repeats" (counts) and "predictions" (five words of each
        sentence, the likeliest first).
    """
    predictions = []
    for sentence, _ in sentences:
        (mask,) = bert.predict(sentence, top_k=5).masks
        predictions.append([prediction.token.lower() for prediction in mask.predictions])
    rows = list(zip(sentences, predictions, strict=True))
    return {
        "model": bert.name,
        "sentences": len(rows),
        "first": sum(words[0] in right for (_, right), words in rows),
        "among_five": sum(any(word in right for word in words) for (_, right), words in rows),
        "repeats": sum(words[0] in re.findall(r"\w+", sentence.lower()) for (sentence, _), words in rows),
        "predictions": predictions,
    }


def main():
    import bert_tf

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    parser.add_argument("--each", action="store_true", help="also print each sentence with the five likeliest words")
    parser.add_argument("--json", action="store_true", help="print one JSON object a model")
    args = parser.parse_args()
    sentences = read_sentences()
    for name in args.models:
        scores = score(bert_tf.load(name), sentences)
        if args.json:
            print(json.dumps(scores))
            continue
        if args.each:
            for (sentence, right), words in zip(sentences, scores["predictions"], strict=True):
                print(f"{'right' if words[0] in right else '-':6}{sentence}  {', '.join(words)}")
        print(
            f"{scores['model']}: {scores['first']} of {scores['sentences']} right at once, {scores['among_five']} "
            f"among five; {scores['repeats']} repeat a word of the sentence"
        )


if __name__ == "__main__":
    main()
