"""The recipes' plans, by arithmetic: nothing is trained here."""

from argparse import ArgumentParser

import numpy as np
import pytest

from bert_tf import checkpoints
from bert_tf.cli import pretrain
from recipes import embedded
from tests.conftest import make_bert


@pytest.mark.parametrize("kind, real, wanted", [("base", 0.866, 500e6), ("small", 0.858, 1000e6)])
def test_a_gpu_reads_as_many_real_tokens_as_are_said(kind, real, wanted):
    """`real`: the measured share of a sequence's positions that are no padding."""
    parser = ArgumentParser()
    pretrain.add_arguments(parser)
    given = {**embedded.COMMON, **embedded.GPU[kind][0]}
    options = [str(text) for name, value in given.items() if name != "run" for text in (f"--{name}", value)]
    args = parser.parse_args(["--text", "x", "--init", "x", "--output", "x", *options])
    read = args.steps * args.batch_size * args.length * real
    assert wanted <= read < 1.05 * wanted


def test_an_average_is_the_weighted_mean_of_every_weight(tmp_path):
    models = {name: make_bert(seed) for name, seed in (("first", 1), ("second", 2))}
    for name, one in models.items():
        checkpoints.save(tmp_path / f"run-small-{name}" / "model", one.config, one.tokenizer, one.model)

    folder = embedded.average({"first": 0.25, "second": 0.75}, tmp_path, "small")

    _, _, mean = checkpoints.read(folder)
    parts = (one.model.get_weights() for one in models.values())
    for found, first, second in zip(mean.get_weights(), *parts, strict=True):
        np.testing.assert_allclose(found, 0.25 * first + 0.75 * second, atol=1e-7)
