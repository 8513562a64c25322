"""The options of the optimizer, which `pretrain` and `finetune` share."""

import argparse

from bert_tf.training.optimizers import OPTIMIZERS


def add_optimizer_arguments(parser: argparse.ArgumentParser, learning_rate: float, warmup: float) -> None:
    """Adds the options of the optimizer to a parser.

    Args:
        parser: `argparse.ArgumentParser`.
        learning_rate: float. The default of `--learning-rate`.
        warmup: float. The default of `--warmup`.
    """
    parser.add_argument(
        "--learning-rate",
        type=float,
        default=learning_rate,
        help="highest learning rate (default %(default)g)",
    )
    parser.add_argument(
        "--warmup",
        type=float,
        default=warmup,
        help="warm-up updates: a share if below 1, else their number (default %(default)g)",
    )
    parser.add_argument(
        "--optimizer",
        default="adamw",
        help=f"{', '.join(OPTIMIZERS)} (default adamw); lamb is for batches of thousands",
    )
    parser.add_argument(
        "--layer-decay",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="the learning rate of each layer is that of the layer above times this factor (1: all equal)",
    )
    parser.add_argument("--weight-decay", type=float, default=0.01, help="weight decay (default 0.01)")
