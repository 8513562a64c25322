"""How the methods of the page Saliency behave: the figures of docs/explanation/methods.md.

    python benchmarks/saliency_behaviour.py

On the ten sentences of `saliency_fidelity`, with one word masked and the likeliest prediction as the target, it
measures how exactly DeepLift's scores add up, how many words get a score below 0, how the methods correlate with
occlusion, what noise does to the prediction under SmoothGrad, how far DeepLift depends on its reference sentences, the
relevance of the biases, the spread of LIME over three runs, and how HotFlip's estimates correlate with the changes
that the model computes. It takes about a quarter of an hour on two cores.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy.stats import spearmanr

from benchmarks.saliency_fidelity import MODEL, SENTENCES

#: Methods whose words below 0 are counted, with their baseline.
SIGNED = (
    ("deeplift", "[MASK]"),
    ("deeplift", "[PAD]"),
    ("integrated-gradients", "[MASK]"),
    ("integrated-gradients", "[PAD]"),
    ("occlusion", "[MASK]"),
)
#: Methods whose scores are correlated with occlusion's.
COMPARED = (("deeplift", "[MASK]"), ("integrated-gradients", "[MASK]"), ("lrp", None), ("gradient-x-input", None))


def word_scores(saliency):
    """The scores of the words, float [words]."""
    return np.array([word.score for word in saliency.words])


def main():
    """Measure and print."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    import bert_tf
    from bert_tf.explain import lime, mask_target, saliency

    bert = bert_tf.load(MODEL)
    cases = [
        (trace, mask_target(bert, trace)) for trace in (bert.trace(text, mask=(word,)) for text, word in SENTENCES)
    ]

    def scores(trace, target, method, baseline):
        return word_scores(saliency(bert, trace, target, method, baseline=baseline))

    for method, baseline in SIGNED:
        values = np.concatenate([scores(trace, target, method, baseline) for trace, target in cases])
        print(
            f"{method} from {baseline}: {(values < 0).sum()} of {len(values)} words below 0, "
            f"the lowest {values.min():.2f}"
        )
    for method, baseline in COMPARED:
        pairs = [(scores(*case, method, baseline), scores(*case, "occlusion", "[MASK]")) for case in cases]
        print(f"{method}: correlation with occlusion {np.mean([np.corrcoef(*pair)[0, 1] for pair in pairs]):.2f}")
    gaps = [abs(saliency(bert, *case, "deeplift", baseline="[PAD]").convergence_delta) for case in cases]
    print(f"deeplift: the scores add up to within {max(gaps):.1e} nats")
    for noise in (0.01, 0.1):
        noisy = [saliency(bert, *case, "smoothgrad", noise=noise).noisy_log_probability for case in cases]
        print(f"smoothgrad, noise {noise}: log-probability {min(noisy):.1f} to {max(noisy):.1f}")
    clean = [saliency(bert, *case, "gradient-x-input").log_probability for case in cases]
    print(f"without noise: log-probability {min(clean):.1f} to {max(clean):.1f}")
    biases = [saliency(bert, *case, "lrp").rest["biases"] for case in cases]
    print(f"lrp: biases {max(biases):.1f} to {min(biases):.1f} nats")
    references(bert, cases[:4])
    for samples in (128, 512):
        runs = [[lime(bert, *case, samples=samples, seed=seed) for seed in range(3)] for case in cases[:4]]
        spread = [np.std([word_scores(run) for run in runs_of_one], axis=0, ddof=1).mean() for runs_of_one in runs]
        quality = [run.weighted_r2 for runs_of_one in runs for run in runs_of_one]
        print(f"lime, {samples}: deviation {np.mean(spread):.2f} nats, R2 {min(quality):.2f} to {max(quality):.2f}")
    hotflip(bert, cases)


def references(bert, cases):
    """Print how DeepLift's scores from 8 sentences compare with those from 8 others, and from 13 with 13 others."""
    import bert_tf
    from bert_tf.explain import deeplift

    texts = bert_tf.sample_file("sentences.txt").read_text(encoding="utf-8").split("\n")
    texts = [text.split("\t")[0] for text in texts if text]
    for count in (8, 13):
        halves = texts[:count], texts[count : 2 * count]
        both = [[word_scores(deeplift(bert, *case, baseline=half)) for half in halves] for case in cases]
        near = np.mean([np.corrcoef(*pair)[0, 1] for pair in both])
        apart = np.mean([np.abs(one - other).mean() for one, other in both])
        print(f"deeplift from {count} sentences and {count} others: correlation {near:.2f}, {apart:.2f} nats apart")


def hotflip(bert, cases):
    """Print how HotFlip's estimates correlate with the true changes."""
    from bert_tf.explain import hotflip

    tried = [flip for case in cases for flip in hotflip(bert, *case, most=1, tried=5).tried]
    estimates, changes = np.array([(flip.estimate, flip.change) for flip in tried]).T
    print(
        f"hotflip: {len(tried)} words, rank correlation {spearmanr(estimates, changes).statistic:.2f}, "
        f"estimates down to {estimates.min():.1f} nats, changes down to {changes.min():.1f}"
    )


if __name__ == "__main__":
    main()
