"""The chain's sums and best paths against the enumeration of every label sequence."""

import itertools

import numpy as np
import pytest

B, T, K = 5, 5, 3


@pytest.fixture(scope="module")
def chain():
    rng = np.random.default_rng(0)
    mask = np.ones((B, T), np.int32)
    # [CLS] and pieces within words left out; one token alone; none at all.
    mask[1] = [0, 1, 0, 0, 1]
    mask[2] = [0, 0, 1, 1, 0]
    mask[3] = [0, 0, 0, 1, 0]
    mask[4] = 0
    return {
        "logits": rng.normal(0, 2, (B, T, K)).astype(np.float32),
        "transitions": rng.normal(0, 2, (K + 2, K)).astype(np.float32),
        "labels": np.where(mask > 0, rng.integers(0, K, (B, T)), -100).astype(np.int32),
        "mask": mask,
    }


def score(logits, transitions, path):
    """Of one path over the words of a chain, by the definition."""
    total = transitions[K, path[0]] + transitions[K + 1, path[-1]]
    total += sum(logits[word, label] for word, label in enumerate(path))
    return total + sum(transitions[a, b] for a, b in zip(path, path[1:]))


def every_path(chain, row):
    """(paths, their scores, logits of the chain's words)"""
    logits = chain["logits"][row][chain["mask"][row] > 0].astype(np.float64)
    paths = list(itertools.product(range(K), repeat=len(logits)))
    return paths, np.array([score(logits, chain["transitions"], path) for path in paths]), logits


def test_the_likelihood_is_that_of_the_enumeration(chain):
    from bert_tf.layers.crf import crf_negative_log_likelihood

    actual = np.array(crf_negative_log_likelihood(**chain))
    for row in range(4):
        paths, scores, _ = every_path(chain, row)
        number = paths.index(tuple(chain["labels"][row][chain["mask"][row] > 0]))
        assert actual[row] == pytest.approx(np.log(np.exp(scores).sum()) - scores[number], abs=1e-4)
    assert actual[4] == 0


def test_viterbi_finds_the_best_and_marginals_add_up_to_one(chain):
    from bert_tf.finetuning.metrics.crf_decoding import marginals, viterbi

    for row in range(4):
        paths, scores, logits = every_path(chain, row)
        assert tuple(viterbi(logits, chain["transitions"])) == paths[int(scores.argmax())]
        chances = np.exp(scores - np.log(np.exp(scores).sum()))
        expected = [
            [sum(chance for path, chance in zip(paths, chances) if path[word] == label) for label in range(K)]
            for word in range(len(logits))
        ]
        assert marginals(logits, chain["transitions"]) == pytest.approx(np.array(expected), abs=1e-6)
    assert len(viterbi(np.zeros((0, K)), chain["transitions"])) == 0


def test_the_gradient_is_the_difference_of_expected_and_seen_labels(chain):
    import tensorflow as tf

    from bert_tf.finetuning.metrics.crf_decoding import marginals
    from bert_tf.layers.crf import crf_negative_log_likelihood

    logits = tf.convert_to_tensor(chain["logits"])

    @tf.function(autograph=False)
    def gradient(logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = tf.reduce_sum(
                crf_negative_log_likelihood(logits, chain["transitions"], chain["labels"], chain["mask"])
            )
        return tape.gradient(loss, logits)

    actual = gradient(logits).numpy()
    for row in range(B):
        real = chain["mask"][row] > 0
        seen = np.eye(K)[chain["labels"][row][real]]
        expected = marginals(chain["logits"][row][real], chain["transitions"]) - seen
        assert actual[row][real] == pytest.approx(expected, abs=1e-5)
        assert not actual[row][~real].any()
