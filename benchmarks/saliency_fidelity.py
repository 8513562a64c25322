"""How much a prediction loses when the words that a saliency method calls important are hidden first.

    python benchmarks/saliency_fidelity.py [--write]

The deletion measure (Samek et al. 2017; DeYoung et al. 2020, comprehensiveness). One word of each sentence is masked,
and the method scores the other words for the likeliest prediction. The five words with the highest scores are replaced
by [MASK], the highest first, one on top of the other. The measure is the log-probability that the prediction loses, in
nats: the mean over the five steps and over the sentences. A random order of the words stands beside the methods: the
mean of several draws, and the lowest and the highest of them. The measure favours methods that replace words by [MASK]
themselves.

For integrated gradients the script also measures the convergence delta as a share of what the scores explain, for
several numbers of steps.

Prints a Markdown table; --write also writes the record that the page Saliency reads. The sentences were written for
this project before any method was tested on them.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

MODEL = "bert-base-cased-embedded"
RECORD = Path(__file__).resolve().parents[1] / "assets" / "records" / "saliency_fidelity.json"
#: (sentence, the word that is hidden in it).
SENTENCES = (
    ("The baker put the bread into the hot oven.", "bread"),
    ("Every winter the lake freezes and the children skate on the ice.", "ice"),
    ("The doctor listened to his heart and wrote a prescription for the patient.", "patient"),
    ("She plays the violin in the city orchestra.", "plays"),
    ("The pilot landed the plane safely in the storm.", "plane"),
    ("Rome is the capital of Italy.", "capital"),
    ("The judge sent the thief to prison for two years.", "prison"),
    ("The students passed the exam because they had worked hard.", "exam"),
    ("The king lived in a castle on the hill with his queen.", "queen"),
    ("The book was written by a young author.", "written"),
)
#: (method, baseline or None); the rollout of the attention maps is no method of the page Saliency.
VARIANTS = (
    ("lime", "[MASK]"),
    ("deeplift", "[MASK]"),
    ("deeplift", "[PAD]"),
    ("integrated-gradients", "[MASK]"),
    ("integrated-gradients", "[PAD]"),
    ("occlusion", "[MASK]"),
    ("occlusion", "[PAD]"),
    ("lrp", None),
    ("smoothgrad", None),
    ("gradient-x-input", None),
    ("attention-rollout", None),
)
WORDS, DRAWS = 5, 20
STEPS = (32, 64)


def loss(bert, trace, target, order):
    """The mean loss of the target in nats while the words are replaced by [MASK] one after another.

    Args:
        order: lists of the positions of each word, the first to replace first.
    """
    from bert_tf.explain.attribution.saliency import target_log_probabilities

    copies = np.repeat(trace.token_ids[None], len(order) + 1, axis=0)
    for step, positions in enumerate(order, 1):
        copies[step:, positions] = bert.tokenizer.mask_id
    scores = target_log_probabilities(bert, copies, trace.segments, target)
    return float(np.mean(scores[0] - scores[1:]))


def token_scores(bert, trace, target, method, baseline, integrated):
    """The scores of the tokens by one method, float [T].

    Args:
        integrated: dict baseline -> the result of integrated gradients with the most steps.
    """
    from bert_tf.explain import attention_rollout, saliency

    if method == "attention-rollout":
        return attention_rollout(trace)[-1, trace.masks[0]]
    if method == "integrated-gradients":
        return integrated[baseline].scores
    return saliency(bert, trace, target, method, baseline=baseline).scores


def measure():
    """Yield the record after each sentence."""
    import bert_tf
    from bert_tf.explain import integrated_gradients, mask_target
    from bert_tf.explain.attribution.saliency import replaceable_word_positions

    bert, rng = bert_tf.load(MODEL), np.random.default_rng(0)
    losses, at_random = {variant: [] for variant in VARIANTS}, []
    gaps = {(baseline, steps): [] for baseline in ("[MASK]", "[PAD]") for steps in STEPS}
    for sentence, word in SENTENCES:
        trace = bert.trace(sentence, mask=(word,))
        target = mask_target(bert, trace)
        words = replaceable_word_positions(trace)
        integrated = {}
        for baseline, steps in gaps:
            result = integrated[baseline] = integrated_gradients(bert, trace, target, steps=steps, baseline=baseline)
            gained = result.log_probability - result.baseline_log_probability
            gaps[baseline, steps].append(abs(result.convergence_delta / gained))
        for variant in VARIANTS:
            scores = token_scores(bert, trace, target, *variant, integrated)
            ranked = sorted(words, key=lambda positions: -scores[positions].sum())
            losses[variant].append(loss(bert, trace, target, ranked[:WORDS]))
        draws = [[words[place] for place in rng.permutation(len(words))[:WORDS]] for _ in range(DRAWS)]
        at_random.append([loss(bert, trace, target, draw) for draw in draws])
        print(sentence, target.label, file=sys.stderr, flush=True)
        yield record_of(losses, at_random, gaps)


def record_of(losses, at_random, gaps):
    """The record of the sentences measured so far: a dict of JSON values; the best method comes first.

    Args:
        losses: dict (method, baseline) -> list with the loss in each sentence. at_random: list with the losses of all
            draws in each sentence. gaps: dict (baseline, steps) -> list with the gap in each sentence.
    """
    random_means = np.mean(at_random, axis=0)
    return {
        "model": MODEL,
        "sentences": len(at_random),
        "words": WORDS,
        "unit": "nats",
        "random": {
            "mean": round(float(random_means.mean()), 2),
            "least": round(float(random_means.min()), 2),
            "greatest": round(float(random_means.max()), 2),
        },
        "methods": [
            {"method": method, "baseline": baseline, "loss": round(float(np.mean(values)), 2)}
            for (method, baseline), values in sorted(losses.items(), key=lambda item: -np.mean(item[1]))
        ],
        "gaps": [
            {
                "baseline": baseline,
                "steps": steps,
                "mean": round(float(np.mean(values)), 4),
                "greatest": round(float(np.max(values)), 4),
            }
            for (baseline, steps), values in gaps.items()
        ],
    }


def main():
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help=f"write {RECORD.name} too")
    arguments = parser.parse_args()
    for record in measure():
        if arguments.write:
            RECORD.parent.mkdir(exist_ok=True)
            RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"| Method | Baseline | Loss, {record['unit']} |\n|---|---|---:|")
    for row in record["methods"]:
        print(f"| {row['method']} | {row['baseline'] or ''} | {row['loss']:.2f} |")
    print("| random order | | {mean:.2f} ({least:.2f} to {greatest:.2f}) |".format(**record["random"]))
    print("\n| Integrated gradients from | Steps | Mean gap | Greatest gap |\n|---|---:|---:|---:|")
    for row in record["gaps"]:
        print(f"| {row['baseline']} | {row['steps']} | {row['mean']:.2%} | {row['greatest']:.2%} |")


if __name__ == "__main__":
    main()
