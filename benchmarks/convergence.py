"""How far integrated gradients miss what they explain, and how many gradients a small gap takes.

    python benchmarks/convergence.py [MODEL ...]

The answers: the first prediction at a masked word in twelve sentences, P(IsNext) and P(NotNext) of twelve pairs, and,
of a fine-tuned classifier, the class of twelve reviews. The gap is the convergence delta as a share of the difference
between the log-probabilities at both ends of the path. It is measured with 32 steps, and with as many gradients as
`most_gap` takes. Prints a Markdown table.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

MODELS = ("bert-base-cased-embedded", "bert-small-uncased-embedded", "sentiment-base-cased")
MOST_GAP = 0.02
#: (sentence, the word that is hidden in it).
SENTENCES = (
    ("The baker put the bread into the hot oven.", "bread"),
    ("Every winter the lake freezes and the children skate on the ice.", "ice"),
    ("She plays the violin in the city orchestra.", "plays"),
    ("The pilot landed the plane safely in the storm.", "plane"),
    ("Rome is the capital of Italy.", "capital"),
    ("The judge sent the thief to prison for two years.", "prison"),
    ("The legislators believed they were on the right side of history.", "right"),
    ("Shanghai is a city in China.", "China"),
    ("My sister bought two tickets for the train to London.", "train"),
    ("He opened the window because the room was warm.", "window"),
    ("The farmer sold his cows at the market.", "market"),
    ("Nobody could read the old letter.", "letter"),
)
PAIRS = (
    ("The baker went to the oven.", "He took out the bread."),
    ("The lake freezes in winter.", "The children skate on it."),
    ("She plays the violin.", "The moon is far away from the earth."),
    ("The pilot landed the plane.", "The passengers were happy."),
    ("Rome is the capital of Italy.", "My brother likes football."),
    ("The legislators believed they were on the right side of history.", "So they changed the law."),
    ("The legislators believed they were on the right side of history.", "The bunny ate the carrot."),
    ("He opened the window.", "The air was fresh."),
    ("The farmer sold his cows.", "He bought a new tractor."),
    ("Nobody could read the letter.", "It was written in an old script."),
    ("We walked to the station.", "The train had already left."),
    ("The king lived in a castle.", "Computers became cheaper."),
)
REVIEWS = (
    "The film was wonderful and I laughed a lot.",
    "A dull story with bad actors.",
    "I would not see it again.",
    "The music is beautiful but the plot is weak.",
    "One of the best films of the year.",
    "It is not bad at all.",
    "The ending made me cry.",
    "Two hours of my life wasted.",
    "Great acting, poor script.",
    "I slept through it.",
    "A charming little comedy.",
    "Nothing new here, and too long.",
)


def answers(bert):
    """Yield (what is explained, trace, target) for every answer that the model gives."""
    from bert_tf.explain import class_target, mask_target, next_sentence_target

    if bert.task:
        for review in REVIEWS:
            trace = bert.trace(review)
            yield "class", trace, class_target(bert, trace)
        return
    for sentence, word in SENTENCES:
        trace = bert.trace(sentence, mask=(word,))
        yield "masked word", trace, mask_target(bert, trace)
    for pair in PAIRS:
        trace = bert.trace(*pair)
        for follows in (True, False):
            yield "next sentence", trace, next_sentence_target(bert, trace, follows)


def gap(result):
    """The convergence delta as a share of what the scores explain."""
    return abs(result.convergence_delta / (result.log_probability - result.baseline_log_probability))


def measure(name):
    """Dict from what is explained to a list of (gap with 32 steps, gap with `MOST_GAP`, gradients that it took)."""
    import bert_tf
    from bert_tf.explain import integrated_gradients

    bert, gaps = bert_tf.load(name), {}
    for kind, trace, target in answers(bert):
        taken = []
        few = integrated_gradients(bert, trace, target)
        enough = integrated_gradients(
            bert, trace, target, most_gap=MOST_GAP, progress=lambda done, total: taken.append(done)
        )
        gaps.setdefault(kind, []).append((gap(few), gap(enough), taken[-1]))
        print(name, kind, *gaps[kind][-1], file=sys.stderr, flush=True)
    return gaps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    print(
        "| model | explained | answers | greatest gap with 32 steps | over 2% | greatest gap with enough "
        "| gradients, median | most |\n|---|---|---|---|---|---|---|---|"
    )
    for name in parser.parse_args().models:
        for kind, rows in measure(name).items():
            few, enough, taken = zip(*rows)
            print(
                f"| {name} | {kind} | {len(rows)} | {max(few):.1%} | {sum(one > MOST_GAP for one in few)} "
                f"| {max(enough):.2%} | {statistics.median(taken):.0f} | {max(taken)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
