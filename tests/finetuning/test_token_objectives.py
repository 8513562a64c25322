"""What tagging, answering and choosing minimise, against PyTorch and the enumeration; parts of a batch add up."""

import itertools

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from bert_tf.finetuning.tasks.token_losses import (
    ChoiceCrossEntropy,
    CRFLoss,
    SpanCrossEntropy,
    TokenCrossEntropy,
)
from tests.finetuning.test_crf import score

B, T, K = 8, 5, 3
WEIGHTS = np.array([1, 2, 0.5, 1, 1, 1, 0, 0], np.float32)


def tags(rng):
    outputs = {"logits": rng.normal(0, 2, (B, T, K)).astype(np.float32)}
    labels = rng.integers(0, K, (B, T)).astype(np.int32)
    counted = rng.choice([0, 0.5, 1], (B, T)).astype(np.float32)  # 0.5: the weight of a class
    losses = cross_entropy(torch.tensor(outputs["logits"]).mT, torch.tensor(labels).long(), reduction="none").numpy()
    hits = outputs["logits"].argmax(-1) == labels
    weights = counted * WEIGHTS[:, None]
    return TokenCrossEntropy(), outputs, {"labels": labels, "label_weights": counted}, losses, hits, weights


def chain(rng):
    transitions = rng.normal(0, 2, (K + 2, K)).astype(np.float32)
    outputs = {"logits": rng.normal(0, 2, (B, T, K)).astype(np.float32), "transitions": np.stack([transitions] * B)}
    labels = rng.integers(0, K, (B, T)).astype(np.int32)
    counted = rng.integers(0, 2, (B, T)).astype(np.float32)
    counted[:, 1] = 1
    losses = np.zeros((B, T))  # of a whole sequence, at its second token
    for row in range(B):
        logits, targets = outputs["logits"][row][counted[row] > 0], labels[row][counted[row] > 0]
        scores = [score(logits, transitions, path) for path in itertools.product(range(K), repeat=len(logits))]
        losses[row, 1] = np.log(np.exp(np.array(scores, np.float64)).sum()) - score(logits, transitions, targets)
    hits = outputs["logits"].argmax(-1) == labels
    weights = counted * WEIGHTS[:, None]
    return CRFLoss(), outputs, {"labels": labels, "label_weights": counted}, losses, hits, weights


def spans(rng):
    lengths = rng.integers(3, T + 1, B)
    mask = (np.arange(T) < lengths[:, None]).astype(np.int32)
    outputs = {f"{side}_logits": rng.normal(0, 2, (B, T)).astype(np.float32) for side in ("start", "end")}
    batch = {f"{side}s": rng.integers(0, lengths).astype(np.int32) for side in ("start", "end")}
    losses, hits = 0, True
    for side in ("start", "end"):
        real = np.where(mask > 0, outputs[f"{side}_logits"], -np.inf)
        places = batch[f"{side}s"]
        places[[0, 4]] = real[[0, 4]].argmax(-1)
        losses = losses + cross_entropy(torch.tensor(real), torch.tensor(places).long(), reduction="none").numpy() / 2
        hits = hits & (real.argmax(-1) == places)
    return SpanCrossEntropy(), outputs, {**batch, "padding_mask": mask}, losses, hits, WEIGHTS


def choices(rng):
    outputs = {"logits": rng.normal(0, 2, (B, K)).astype(np.float32)}
    labels = rng.integers(0, K, B).astype(np.int32)
    losses = cross_entropy(torch.tensor(outputs["logits"]), torch.tensor(labels).long(), reduction="none").numpy()
    return ChoiceCrossEntropy(), outputs, {"labels": labels}, losses, outputs["logits"].argmax(-1) == labels, WEIGHTS


@pytest.mark.parametrize("make", [tags, chain, spans, choices])
def test_unequal_parts_of_a_batch_add_up_to_the_mean_over_it(make):
    objective, outputs, batch, losses, hits, weights = make(np.random.default_rng(1))
    batch["weights"] = WEIGHTS
    expected = {"loss": (losses * weights).sum() / weights.sum(), "accuracy": (hits * weights).sum() / weights.sum()}
    if make is chain:
        expected["loss"] = (losses.sum(axis=1) * WEIGHTS).sum() / weights.sum()
    whole, counts = objective(outputs, batch), objective.counts(batch)
    parts = [
        objective(
            {name: value[part] for name, value in outputs.items()},
            {name: value[part] for name, value in batch.items()},
            counts,
        )
        for part in (slice(0, 3), slice(3, 7), slice(7, 8))
    ]
    for name, value in expected.items():
        assert value > 0
        assert float(whole[name]) == pytest.approx(value, rel=1e-5)
        assert sum(float(part[name]) for part in parts) == pytest.approx(value, rel=1e-5)
