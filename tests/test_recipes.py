"""The recipes' plans, by arithmetic: nothing is trained here."""

from argparse import ArgumentParser

import pytest

from bert_tf.pretrain import command
from recipes import embedded


@pytest.mark.parametrize("kind, real, wanted", [("base", 0.866, 500e6), ("small", 0.858, 1000e6)])
def test_a_gpu_reads_as_many_real_tokens_as_are_said(kind, real, wanted):
    """`real`: the measured share of a sequence's positions that are no padding."""
    parser = ArgumentParser()
    command.add_arguments(parser)
    given = {**embedded.COMMON, **embedded.GPU[kind][0]}
    options = [str(text) for name, value in given.items() if name != "run" for text in (f"--{name}", value)]
    args = parser.parse_args(["--text", "x", "--init", "x", "--output", "x", *options])
    read = args.steps * args.batch_size * args.length * real
    assert wanted <= read < 1.05 * wanted
