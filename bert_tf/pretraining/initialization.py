"""What a pre-training begins from: a model, some of a teacher's layers, or random weights of any architecture."""

import os

from bert_tf.architectures import ARCHITECTURES


def model_type_of(objective, generator=None, given=None):
    """The architecture of a model that starts fresh.

    Args:
        objective: out of `instances.OBJECTIVES`. generator: ELECTRA's share of the width or its name, or None.
        given: the model type that was asked for; None for the one that the objective was made for.
    """
    if given or generator is not None:
        return given or "electra"
    return "albert" if objective == "sop" else "bert"


def start(args, teacher_model=None):
    """(`BertConfig`, tokenizer, `BertModel` to start from or None), as the parsed options of `pretrain` say.

    Args: args: the options. teacher_model: (config, tokenizer, model) of the teacher, or None.

    Raises: ValueError with one sentence where the options do not fit together.
    """
    from bert_tf import checkpoints

    if args.embedding_size is not None and (args.init or args.student_layers is not None):
        raise ValueError(
            "--embedding-size goes with --size; a model that is begun from another one has its embeddings."
        )
    if args.student_layers is not None:
        from bert_tf.pretraining.objectives.distillation import build_student

        student = build_student(teacher_model[2], args.student_layers, model_type=args.model_type)
        return student.bert_config, teacher_model[1], student
    if args.init:
        config, tokenizer, model = checkpoints.read(checkpoints.find(args.init))
        return _config_of_type(args, config), tokenizer, model
    if not (args.vocab or args.records):
        raise ValueError("--size starts from random weights and needs --vocab, a model or folder with a vocabulary.")
    tokenizer = tokenizer_of(args.vocab or args.records)
    model_type = model_type_of(args.objective, args.generator, args.model_type)
    return new_config(args.size, model_type, tokenizer, args.positions, args.embedding_size), tokenizer, None


def tokenizer_of(name):
    """The tokenizer of a model, or of a folder with a vocabulary of any kind.

    Args: name: of a model, or path of a folder; a folder that is there comes first.

    Raises: UnknownModel: there is neither. VocabularyError: the folder's vocabulary cannot be read.
    """
    from bert_tf import checkpoints
    from bert_tf.tokenizers import read_tokenizer

    return read_tokenizer(name if os.path.isdir(name) else checkpoints.find(name))


def _config_of_type(args, config):
    """The settings of what begins from the model in --init: its own, or those of a discriminator with its encoder."""
    kind = f"--init {args.init} is a {config.architecture.title} model"
    if args.model_type in (None, config.model_type):
        if args.generator is not None and config.model_type == "bert":
            raise ValueError(
                f"{kind}, without the head that --generator trains; --model-type electra begins a "
                "discriminator from its encoder."
            )
        return config
    if args.model_type != "electra":
        raise ValueError(
            f"{kind}, not of the type {args.model_type}; leave --model-type out, or start fresh with --size."
        )
    if config.model_type != "bert":
        raise ValueError(
            f"{kind}, and only a BERT's encoder can begin an electra; give a BERT, or start fresh with --size."
        )
    if args.generator is None:
        raise ValueError(
            "--model-type electra makes a discriminator of a BERT, which learns only with --generator; "
            "give it, or leave --model-type out."
        )
    return config.replace(model_type="electra", embedding_size=config.hidden_size)


def new_config(size, model_type, tokenizer, positions=512, embedding_size=None):
    """The settings of a model with random weights, with all that is its architecture's own.

    Args:
        size: one of the architecture's named sizes, or LAYERSxWIDTHxHEADS. model_type: a key of `ARCHITECTURES`.
        tokenizer: for the number of tokens and the padding id. positions: the longest input in tokens.
        embedding_size: E; None for what the architecture's released sizes have.

    Returns: `BertConfig`. Where an architecture has embeddings of E, a width that no released size has gets half of
        itself, at most E.

    Raises: ConfigError.
    """
    from bert_tf.config import BertConfig

    architecture, numbers = ARCHITECTURES[model_type], size.split("x")
    pad = tokenizer.pad_id
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
    """The embedding size that goes with a width, as a dict; empty where there is none but the width itself."""
    usual = architecture.defaults.get("embedding_size")
    if usual is None:
        return {}
    released = (
        size.get("embedding_size", usual)
        for size in architecture.sizes.values()
        if size.get("hidden_size", architecture.defaults["hidden_size"]) == hidden
    )
    return {"embedding_size": next(released, max(1, min(usual, hidden // 2)))}


def check_objective_fits(config, objective, heads):
    """Refuses an objective that a model of this architecture cannot learn by.

    Args: config: `BertConfig`. objective: its name. heads: those it trains.

    Raises: ValueError, with a sentence that says what to give instead.
    """
    architecture = config.architecture
    if objective == "clm" and architecture.attention_direction == "bidirectional":
        raise ValueError(
            f"--objective clm predicts every token, and a {architecture.title} model sees them all; it "
            "needs a model that reads one way (--model-type left-to-right or two-one-way)."
        )
    missing = [head for head in heads if head not in architecture.heads]
    if missing:
        able = ", ".join(name for name, one in ARCHITECTURES.items() if set(heads) <= set(one.heads))
        told, other = (
            ("--generator", "leave it out")
            if "replaced" in heads
            else (f"--objective {objective}", "give --objective mlm")
        )
        raise ValueError(
            f"{told} trains a {_HEADS[missing[-1]]} head, which a {architecture.title} model does not have; "
            f"{other}, or take a model of the type {able}."
        )


_HEADS = {
    "pooler": "pooler",
    "mlm": "masked-word",
    "nsp": "next-sentence",
    "sop": "sentence-order",
    "replaced": "replaced-token",
}


def initialize(model, source, corpus=None):
    """Copies what the source has; a fresh masked-LM head starts from the corpus' word frequencies.

    Args:
        model: `BertModel` to start. source: `BertModel` or None. corpus: `TokenCorpus` or `Records`, or None.
    """
    from bert_tf.models import named_variables
    from bert_tf.training.weights import copy_weights

    copied = copy_weights(model, source) if source else set()
    bias = "cls.predictions.bias"
    if corpus is not None and bias not in copied and (head := named_variables(model).get(bias)) is not None:
        head.assign(corpus.log_frequencies(model.bert_config.vocab_size))
