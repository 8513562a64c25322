"""The initial weights of a pre-training: a model, some layers of a teacher, or random weights of any architecture."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from bert_tf.architectures import ARCHITECTURES

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from bert_tf.config import BertConfig
    from bert_tf.models import BertModel
    from bert_tf.pretraining.data.corpus import TokenCorpus
    from bert_tf.pretraining.data.records_feed import Records
    from bert_tf.tokenizers.base import BaseTokenizer


#: The default of --positions, the longest input of a model with random weights.
POSITIONS = 512


def model_type_of(objective: str, generator: float | str | None = None, requested: str | None = None) -> str:
    """The architecture of a model that starts with random weights.

    Args:
        objective: str. One of `packing.OBJECTIVES`.
        generator: float or str. ELECTRA's generator: its share of the width, or its name; or None.
        requested: str. The requested model type; None for the usual one of the objective.

    Returns: str, a model type.
    """
    if requested or generator is not None:
        return requested or "electra"
    return "albert" if objective == "sop" else "bert"


def start(
    args: Namespace, teacher_model: tuple[BertConfig, BaseTokenizer, BertModel] | None = None
) -> tuple[BertConfig, BaseTokenizer, BertModel | None]:
    """Makes the settings and reads the source model of a pre-training from the options of `pretrain`.

    Args:
        args: argparse.Namespace. The parsed options. With --size a missing --positions is set to `POSITIONS`.
        teacher_model: (config, tokenizer, model) of the teacher, or None.

    Returns: (`BertConfig`, tokenizer, the `BertModel` to start from or None).

    Raises: ValueError with one sentence if the options do not fit together.
    """
    from bert_tf import checkpoints
    from bert_tf.checkpoints.added_words import with_words
    from bert_tf.checkpoints.reading import read_stored

    if args.init or args.student_layers is not None:
        for name, part in (("embedding_size", "embeddings"), ("vocab", "vocabulary"), ("positions", "positions")):
            if getattr(args, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(
                    f"{option} goes with --size; a model that starts from another one has its {part}: leave it out."
                )
    if args.add_tokens and not args.init:
        raise ValueError("--add-tokens goes with --init: a model that starts from random weights takes --vocab.")
    if args.student_layers is not None:
        from bert_tf.pretraining.objectives.distillation import build_student

        _, tokenizer, teacher = cast("tuple[BertConfig, BaseTokenizer, BertModel]", teacher_model)
        student = build_student(teacher, args.student_layers, model_type=args.model_type)
        return student.bert_config, tokenizer, student
    if args.init:
        folder = checkpoints.find(args.init)
        if args.add_tokens:
            config, tokenizer, stored = with_words(*read_stored(folder), args.add_tokens)
            return _config_of_type(args, config), tokenizer, stored.model
        config, tokenizer, model = checkpoints.read(folder)
        return _config_of_type(args, config), tokenizer, model
    if not (args.vocab or args.records):
        raise ValueError("--size starts from random weights and needs --vocab, a model or folder with a vocabulary.")
    tokenizer = tokenizer_of(args.vocab or args.records)
    model_type = model_type_of(args.objective, args.generator, args.model_type)
    args.positions = POSITIONS if args.positions is None else args.positions
    return new_config(args.size, model_type, tokenizer, args.positions, args.embedding_size), tokenizer, None


def tokenizer_of(name: str) -> BaseTokenizer:
    """The tokenizer of a model, or of a folder with a vocabulary of any kind.

    Args:
        name: str. The path of a folder, or, if there is no such folder, the name of a model.

    Raises:
        UnknownModel: there is no such folder and no such model.
        VocabularyError: the vocabulary of the folder cannot be read.
    """
    from bert_tf import checkpoints
    from bert_tf.tokenizers import read_tokenizer

    return read_tokenizer(name if os.path.isdir(name) else checkpoints.find(name))


def _config_of_type(args, config):
    """The settings of a model that starts from --init: those of --init, or of a discriminator with its encoder."""
    init_is = f"--init {args.init} is {config.architecture.with_article} model"
    is_electra = config.model_type == "electra"
    if args.model_type in (None, config.model_type):
        if args.generator is not None and config.model_type == "bert":
            raise ValueError(
                f"{init_is}, without the head that --generator trains; --model-type electra makes a "
                "discriminator that starts from its encoder."
            )
        if isinstance(args.generator, float) and "replaced" in config.architecture.heads and not is_electra:
            raise ValueError(
                f"{init_is}, and --generator {args.generator:g}, a share of the width, is made for an ELECTRA only; "
                "give --generator MODEL, a trained model with the same tokenizer."
            )
        return config
    if args.model_type != "electra":
        raise ValueError(
            f"{init_is}, not of the type {args.model_type}; leave --model-type out, or start fresh with --size."
        )
    if config.model_type != "bert":
        raise ValueError(
            f"{init_is}, and an electra can start only from a BERT's encoder; give a BERT, or start fresh with --size."
        )
    if args.generator is None:
        raise ValueError(
            "--model-type electra makes a discriminator of a BERT, which learns only with --generator; "
            "give it, or leave --model-type out."
        )
    return config.replace(model_type="electra", embedding_size=config.hidden_size)


def new_config(
    size: str,
    model_type: str,
    tokenizer: BaseTokenizer,
    positions: int | None = None,
    embedding_size: int | None = None,
) -> BertConfig:
    """The settings of a model with random weights, including the defaults of its architecture.

    Args:
        size: str. One of the architecture's named sizes, or LAYERSxWIDTHxHEADS.
        model_type: str. A key of `ARCHITECTURES`.
        tokenizer: a `Tokenizer`, for the number of tokens and the padding id.
        positions: int. The longest input in tokens; None for 512 or, without a table of positions, for that of the
            architecture's released sizes.
        embedding_size: int. E; None for the value of the architecture's released sizes.

    Returns: `BertConfig`. If the architecture's embeddings have their own size E, and no released size has this hidden
        size, the embedding size is half of the hidden size, at most E.

    Raises: ConfigError if the size is unknown or the settings do not fit together.
    """
    from bert_tf.config import BertConfig

    architecture, numbers = ARCHITECTURES[model_type], size.split("x")
    pad = tokenizer.pad_id
    if positions is None:
        positions = 512 if architecture.has_position_table else architecture.defaults["max_position_embeddings"]
    settings = {
        "vocab_size": tokenizer.vocab_size,
        "pad_token_id": pad,
        "max_position_embeddings": positions + (pad + 1 if architecture.positions_after_pad else 0),
    }
    if embedding_size is not None:
        settings["embedding_size"] = embedding_size
    if len(numbers) != 3 or not all(number.isdigit() and int(number) for number in numbers):
        return BertConfig.named(size, model_type, **settings)
    layers, hidden, heads = map(int, numbers)
    return BertConfig(
        **{
            **architecture.defaults,
            **_embedding_of(architecture, hidden),
            "model_type": model_type,
            "num_hidden_layers": layers,
            "hidden_size": hidden,
            "num_attention_heads": heads,
            "intermediate_size": 4 * hidden,
            **settings,
        }
    )


def _embedding_of(architecture, hidden):
    """The embedding size for a hidden size, as a dict; empty if the architecture has no separate embedding size."""
    default = architecture.defaults.get("embedding_size")
    if default is None:
        return {}
    released = (
        size.get("embedding_size", default)
        for size in architecture.sizes.values()
        if size.get("hidden_size", architecture.defaults["hidden_size"]) == hidden
    )
    return {"embedding_size": next(released, max(1, min(default, hidden // 2)))}


def check_objective_fits(config: BertConfig, objective: str, heads: Iterable[str]) -> None:
    """Checks that a model of this architecture can be trained with an objective.

    Args:
        config: `BertConfig`.
        objective: str. The name of the objective.
        heads: iterable of str. The heads that the objective trains.

    Raises: ValueError if it cannot; the message says which options to use instead.
    """
    architecture = config.architecture
    if objective == "clm" and architecture.attention_direction == "bidirectional":
        raise ValueError(
            f"--objective clm predicts every token, and {architecture.with_article} model sees them all; it "
            "needs a model that reads one way (--model-type left-to-right or two-one-way)."
        )
    missing = [head for head in heads if head not in architecture.heads]
    if missing:
        suitable = ", ".join(name for name, other in ARCHITECTURES.items() if set(heads) <= set(other.heads))
        option, remedy = (
            ("--generator", "leave it out")
            if "replaced" in heads
            else (f"--objective {objective}", "give --objective mlm")
        )
        raise ValueError(
            f"{option} trains a {_HEADS[missing[-1]]} head, which {architecture.with_article} model does not have; "
            f"{remedy}, or take a model of the type {suitable}."
        )


_HEADS = {
    "pooler": "pooler",
    "mlm": "masked-word",
    "nsp": "next-sentence",
    "sop": "sentence-order",
    "replaced": "replaced-token",
}


def initialize(model: BertModel, source: BertModel | None, corpus: TokenCorpus | Records | None = None) -> None:
    """Sets the initial weights of a model: copies the weights that the source has.

    The bias of a new masked-LM head gets the log frequencies of the tokens in the corpus.

    Args:
        model: the `BertModel` to initialize.
        source: the `BertModel` to copy from, or None.
        corpus: `TokenCorpus` or `Records`, or None.
    """
    from bert_tf.models import named_variables
    from bert_tf.training.weights import copy_weights

    copied = copy_weights(model, source) if source else set()
    bias = "cls.predictions.bias"
    if corpus is not None and bias not in copied and (head := named_variables(model).get(bias)) is not None:
        head.assign(corpus.log_frequencies(model.bert_config.vocab_size))
