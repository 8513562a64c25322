"""The options of the optimizer and of the devices, which `pretrain` and `finetune` share."""

import argparse

from bert_tf.training.optimizers import OPTIMIZERS
from bert_tf.user_errors import whole_number


def add_optimizer_arguments(parser: argparse.ArgumentParser, learning_rate: float, warmup: float) -> None:
    """Adds the options of the optimizer to a parser.

    Args:
        parser: `argparse.ArgumentParser`.
        learning_rate: float. The default of `--learning-rate`.
        warmup: float. The default of `--warmup`.
    """
    parser.add_argument(
        "--learning-rate", type=float, default=learning_rate, help="highest learning rate (default %(default)g)"
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
    parser.add_argument(
        "--freeze-layers", type=int, default=0, metavar="N", help="freeze the embeddings and the lowest N layers"
    )


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that say where and in what precision an update is computed."""
    parser.add_argument(
        "--strategy",
        default="auto",
        metavar="NAME",
        help="auto (default), one, mirrored (all GPUs here), multiworker (by TF_CONFIG) or tpu",
    )
    parser.add_argument(
        "--accumulate",
        type=int,
        default=1,
        metavar="K",
        help="split a device's part of the batch into K micro-batches, for less memory",
    )
    parser.add_argument(
        "--precision",
        default="float32",
        help="float32 (default), bfloat16_products (fast on CPUs with AVX512-BF16), mixed_bfloat16 or "
        "mixed_float16 (with a loss scale)",
    )
    parser.add_argument("--jit", action="store_true", help="compile the training step with XLA")
    parser.add_argument("--threads", type=whole_number(1), help="CPU threads to use")
