"""The models, the objective and the optimizer of a pre-training, made from its options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bert_tf.pretraining.initialization import initialize

if TYPE_CHECKING:
    import keras

    from bert_tf.config import BertConfig
    from bert_tf.models import BertModel
    from bert_tf.pretraining.data.corpus import TokenCorpus
    from bert_tf.pretraining.data.records_feed import Records
    from bert_tf.pretraining.phases import Phase
    from bert_tf.tokenizers.base import BaseTokenizer


def make_networks(
    args: argparse.Namespace,
    config: BertConfig,
    source: BertModel | None,
    corpus: TokenCorpus | Records,
    objective: Any,
    fixed_model: BertModel | None,
    strategy: Any,
) -> tuple[BertModel, BertModel | None, keras.Model, keras.optimizers.Optimizer]:
    """Makes the networks and the optimizer. Call it in the scope of the strategy.

    Args:
        args: argparse.Namespace. The parsed options.
        config: `BertConfig`. The settings of the model.
        source: `BertModel`. The model to copy weights from, or None.
        corpus: `TokenCorpus` or `Records`. The text, for the initial bias of the masked-LM head.
        objective: the objective, from `training_objective`.
        fixed_model: `BertModel`. A teacher or a fixed generator, which is not trained, or None.
        strategy: the distribution strategy of TensorFlow.

    Returns: (the `BertModel`, the trained generator or None, the network to train, the built optimizer). The network
        is the model alone, or the model together with the trained generator or with `fixed_model`.
    """
    from bert_tf.models import build_pretraining_model
    from bert_tf.pretraining.objectives.electra import make_generator
    from bert_tf.training.fused_ops import can_fuse, fuse
    from bert_tf.training.optimizers.registry import make_optimizer
    from bert_tf.training.optimizers.schedule import layer_factors, warmup_steps
    from bert_tf.training.precision import apply_precision, build_policy, products_dtype, with_loss_scale
    from bert_tf.training.rematerialization import rematerialise
    from bert_tf.training.weights import freeze

    model = build_pretraining_model(
        config, objective.model_outputs, objective.heads, dtype=build_policy(args.precision)
    )
    initialize(model, source, corpus)
    freeze(model, args.freeze_layers)
    generator = make_generator(model, args.generator) if isinstance(args.generator, float) else None
    if generator:
        initialize(generator, None, corpus)
    second_model = generator or fixed_model
    network = objective.network(model, second_model) if second_model else model
    for part in filter(None, (network, fixed_model)):
        apply_precision(part, args.precision)
        if can_fuse(args.precision, strategy, args.jit):
            fuse(part)
    if args.rematerialise:
        rematerialise(model)
    variables = network.trainable_variables
    optimizer = make_optimizer(
        variables,
        args.learning_rate,
        args.steps,
        warmup_steps(args.warmup, args.steps),
        args.weight_decay,
        args.optimizer,
        layer_factors(model, args.layer_decay),
        products_dtype(args.precision),
    )
    return model, generator, network, with_loss_scale(optimizer, variables, args.precision)


def read_teacher(args: argparse.Namespace) -> tuple[BertConfig, BaseTokenizer, BertModel] | None:
    """Reads the model of --teacher, and sets a missing --distil to the first of `DISTILLATION_TARGETS`.

    Returns: (`BertConfig`, tokenizer, `BertModel`), or None without --teacher.

    Raises: ValueError if --student-layers or --distil is set without --teacher.
    """
    from bert_tf import checkpoints
    from bert_tf.pretraining.objectives.distillation import DISTILLATION_TARGETS

    if not args.teacher:
        if args.student_layers is not None:
            raise ValueError("--student-layers starts from a teacher's layers and needs --teacher MODEL.")
        if args.distil is not None:
            raise ValueError(f"--distil {args.distil} says what to learn from a teacher and needs --teacher MODEL.")
        return None
    args.distil = DISTILLATION_TARGETS[0] if args.distil is None else args.distil
    return checkpoints.read(checkpoints.find(args.teacher))


def check_fixed_model(
    option: str,
    model: tuple[BertConfig, BaseTokenizer, BertModel],
    tokenizer: BaseTokenizer,
    phases: Sequence[Phase],
    heads: Sequence[str] = ("mlm",),
) -> None:
    """Checks that a teacher or a fixed generator has its heads and can read the sequences of the model to train.

    Args:
        option: str. The option that names it, with its value, for the message.
        model: (`BertConfig`, tokenizer, `BertModel`) of the teacher or generator.
        tokenizer: the tokenizer of the model to train.
        phases: sequence of `Phase`. The phases of the training.
        heads: sequence of str. The heads that the training asks it by.

    Raises: ValueError if a head is missing, or its tokenizer or its input length does not fit.
    """
    from bert_tf.errors import require_head

    config, own_tokenizer, network = model
    for head in heads:
        require_head(network.bert_heads, head, option)
    if not own_tokenizer.cuts_alike(tokenizer):
        raise ValueError(
            f"{option} has another vocabulary than the model or cuts text otherwise; give one with the same tokenizer."
        )
    longest = max(phase.length for phase in phases)
    if longest > config.max_tokens:
        raise ValueError(f"{option} takes at most {config.max_tokens} tokens, but the sequences have {longest}.")


def read_fixed_generator(
    args: argparse.Namespace, tokenizer: BaseTokenizer, phases: Sequence[Phase]
) -> BertModel | None:
    """Reads the generator that --generator names.

    Args:
        args: argparse.Namespace. The parsed options.
        tokenizer: the tokenizer of the model to train.
        phases: sequence of `Phase`. The phases of the training.

    Returns: `BertModel`; None if --generator is a share of the width, or not set.

    Raises: ValueError as `check_fixed_model`.
    """
    from bert_tf import checkpoints

    if not isinstance(args.generator, str):
        return None
    option = f"--generator {args.generator}"
    generator = checkpoints.read(checkpoints.find(args.generator))
    check_fixed_model(option, generator, tokenizer, phases)
    return generator[2]


def training_objective(args: argparse.Namespace) -> Any:
    """The objective of --objective, --generator and --teacher.

    Returns: `MaskedLM` or one of its subclasses, `Distillation` or `ReplacedTokenDetection`.

    Raises: ValueError if the options do not fit together.
    """
    from bert_tf.pretraining.objectives.distillation import Distillation
    from bert_tf.pretraining.objectives.electra import ReplacedTokenDetection
    from bert_tf.pretraining.objectives.masked_lm import make_objective

    objective = make_objective(args.objective)
    if args.generator is not None:
        if args.objective != "mlm" or args.teacher:
            raise ValueError("--generator goes with --objective mlm and without --teacher.")
        if args.model_type not in (None, "electra"):
            raise ValueError(f"--generator makes an electra; leave --model-type {args.model_type} out.")
        return ReplacedTokenDetection(learning=isinstance(args.generator, float))
    return Distillation(objective, args.distil) if args.teacher else objective


def update_flops(
    model: BertModel,
    generator: BertModel | None,
    fixed_model: BertModel | None,
    frozen: int,
    shape: tuple[int, int, int],
) -> float:
    """The FLOPs of one update.

    Args:
        model: `BertModel`. The model that is trained.
        generator: `BertModel`. The generator that is trained with it; or None.
        fixed_model: `BertModel`. Counts with a forward pass; or None.
        frozen: int. The number of the lowest layers of `model` that are frozen, as in `training.weights.freeze`.
        shape: tuple of int (B, T, P). The numbers of sequences, tokens and masked positions.

    Returns: float.
    """
    from bert_tf.flops import forward_flops, training_flops

    flops = training_flops(model.bert_config, model.bert_heads, *shape, frozen)
    if generator:
        flops += training_flops(generator.bert_config, generator.bert_heads, *shape)
    if fixed_model:
        flops += forward_flops(fixed_model.bert_config, fixed_model.bert_heads, *shape)
    return flops
