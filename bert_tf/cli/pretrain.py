"""`python -m bert_tf pretrain`: pre-trains a model on raw text or prepared records; a run can be resumed."""

import dataclasses
from contextlib import nullcontext
from pathlib import Path

from bert_tf.architectures import ARCHITECTURES
from bert_tf.cli.prepare import add_example_arguments, mask_settings
from bert_tf.folder_lock import locked_folder
from bert_tf.pretraining.initialization import check_objective_fits, initialize, start
from bert_tf.pretraining.run_settings import check_embeddings, check_run, record_settings
from bert_tf.training.optimizers import OPTIMIZERS
from bert_tf.user_errors import SEED, whole_number


def add_arguments(parser):
    """Adds the options of `pretrain` to an `argparse` parser."""
    data = parser.add_mutually_exclusive_group(required=True)
    data.add_argument(
        "--text",
        nargs="+",
        metavar="FILE",
        help="files or globs, with new masks in each epoch: one paragraph a line and a blank line between "
        "documents, or .jsonl with one document a line; .gz, .xz, .zst",
    )
    data.add_argument(
        "--records", metavar="DIR", help="examples made by `prepare`, with their objective, length and masks"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the run; resumed if it exists")
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument(
        "--init", metavar="MODEL", help="start from this model; heads it lacks start with random weights"
    )
    start.add_argument(
        "--size", help="start from random weights (needs --vocab): a named size, or LAYERSxWIDTHxHEADS like 3x128x4"
    )
    start.add_argument(
        "--student-layers", type=int, metavar="N", help="start from N of the --teacher's layers, evenly spread"
    )
    parser.add_argument("--teacher", metavar="MODEL", help="distil this model; it must have the same vocabulary")
    parser.add_argument(
        "--distil",
        default="states",
        metavar="WAY",
        help="what to learn from the teacher: states (its predictions and last hidden states, as in DistilBERT) "
        "or relations (the token relations of its last layer, as in MiniLM, for any width)",
    )
    parser.add_argument(
        "--generator",
        type=_share_or_model,
        metavar="SHARE|MODEL",
        help="as in ELECTRA: a generator of this share of the width (0.25) fills the masked positions, "
        "and the model learns which tokens were replaced; or a trained model of the same vocabulary "
        "fills them and is not trained; with --objective mlm",
    )
    parser.add_argument(
        "--model-type",
        choices=tuple(ARCHITECTURES),
        help="of a model of --size (default: bert; albert with --objective sop, electra with "
        "--generator; causal models need --objective clm), of a student of a BERT that becomes a "
        "distilbert, or of an electra that starts with the encoder of the BERT in --init",
    )
    parser.add_argument(
        "--vocab",
        metavar="MODEL",
        help="a model or folder whose vocabulary is used, for --size (default: --records)",
    )
    parser.add_argument("--positions", type=int, default=512, help="longest input of a model of --size, in tokens")
    parser.add_argument(
        "--embedding-size",
        type=int,
        metavar="E",
        help="width of the token embeddings of an albert or electra of --size (default: as released; in other "
        "sizes at most half of the hidden size)",
    )
    parser.add_argument("--steps", type=whole_number(1), default=1000, help="updates in all")
    parser.add_argument(
        "--batch-size", type=int, default=32, help="sequences of an update, over all devices and micro-batches together"
    )
    parser.add_argument(
        "--strategy",
        default="auto",
        metavar="NAME",
        help="auto, one, mirrored (all GPUs here), multiworker (by TF_CONFIG) or tpu",
    )
    parser.add_argument(
        "--accumulate",
        type=int,
        default=1,
        metavar="K",
        help="split a device's part of the batch into K micro-batches, for less memory",
    )
    parser.add_argument("--length", type=int, default=128, help="tokens of a sequence")
    parser.add_argument(
        "--phases",
        metavar="LENGTH:SHARE,…",
        help="instead of --length: short sequences first, like 128:0.9,512:0.1 of the steps",
    )
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument(
        "--warmup", type=float, default=0.05, help="below 1 the share of the warm-up steps, else their number"
    )
    parser.add_argument(
        "--optimizer", default="adamw", help=f"{', '.join(OPTIMIZERS)}; lamb is for batches of thousands"
    )
    parser.add_argument(
        "--layer-decay",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="the learning rate of each layer is that of the layer above times this factor (1: all equal)",
    )
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--dropout", type=float, help="replaces the dropout of the model (0 suits short runs)")
    parser.add_argument(
        "--freeze-layers",
        type=int,
        default=0,
        metavar="N",
        help="freeze the embeddings and the lowest N layers",
    )
    add_example_arguments(parser)
    parser.add_argument(
        "--precision",
        default="float32",
        help="float32, bfloat16_products (fast on CPUs with AVX512-BF16), mixed_bfloat16 or "
        "mixed_float16 (with a loss scale)",
    )
    parser.add_argument(
        "--rematerialise",
        action="store_true",
        help="compute the layers again in the backward pass instead of storing them: less memory, more time",
    )
    parser.add_argument("--jit", action="store_true", help="compile the step with XLA")
    parser.add_argument("--threads", type=int, help="CPU threads to use")
    parser.add_argument("--seed", type=SEED, default=0)
    parser.add_argument("--save-every", type=whole_number(1), default=500, help="steps between checkpoints")
    parser.add_argument(
        "--keep", type=whole_number(1), default=2, metavar="N", help="checkpoints to keep: the newest N and the best"
    )
    parser.add_argument(
        "--snapshots",
        action="store_true",
        help="keep small float16 models of steps 0, 1, 2, 5, 10, 20, 50, … in OUTPUT/snapshots",
    )
    parser.add_argument(
        "--stop-after", type=whole_number(1), metavar="STEP", help="save and stop at this step; resume later"
    )
    parser.add_argument("--log-every", type=whole_number(1), default=50)
    parser.add_argument("--max-documents", type=int, help="the number of documents to use, from the first")
    parser.add_argument("--corpus", metavar="DIR", help="folder of the tokenized text (default: in --output)")


def run(args):
    """Trains with the parsed options and writes the model to `OUTPUT/model`.

    Args:
        args: argparse.Namespace.

    Returns: exit code: 0 at --steps or --stop-after, `training.loop.STOPPED` if a signal came before.
    """
    from bert_tf.quiet_import import import_tensorflow

    import_tensorflow()
    from bert_tf.training.strategy import (
        choose,
        is_chief,
        make_strategy,
        use_threads,
    )

    name = choose(args.strategy)
    use_threads(args.threads, one_device=name == "one")
    # Before anything else in TensorFlow, which connects to the other machines only when it starts.
    strategy = make_strategy(name)
    with locked_folder(args.output, "pretrain") if is_chief(strategy) else nullcontext():
        return _run(args, strategy)


def _run(args, strategy):
    """Does the work of `run` while this process holds the lock of the folder."""
    import keras

    from bert_tf import checkpoints
    from bert_tf.pretraining.data.packing import check_documents
    from bert_tf.pretraining.phases import plan_phases
    from bert_tf.training.checkpoint import writing
    from bert_tf.training.loop import STOPPED, Trainer
    from bert_tf.training.peak_flops import measure_peak_flops
    from bert_tf.training.snapshots import SnapshotWriter
    from bert_tf.training.step import check_batch_size
    from bert_tf.training.strategy import num_replicas, scope

    check_batch_size(args.batch_size, strategy, args.accumulate)
    keras.utils.set_random_seed(args.seed)
    output = Path(args.output)
    with scope(strategy):
        teacher_model = _teacher(args)
    teacher = teacher_model and teacher_model[2]
    records = _records(args) if args.records else None
    config, tokenizer, source = start(args, teacher_model)
    if records:
        records.check_vocabulary(tokenizer)
    objective = _objective(args)
    check_objective_fits(config, args.objective, objective.heads)
    if args.dropout is not None:
        config = config.replace(hidden_dropout_prob=args.dropout, attention_probs_dropout_prob=args.dropout)
    check_run(output, args, tokenizer, records, objective.heads)
    check_embeddings(output, config)
    corpus = records or _prepare(args, tokenizer, strategy)
    check_documents(args.objective, corpus.manifest.get("documents"))
    phases = plan_phases(args.phases, args.length, args.steps, config.max_tokens)
    with scope(strategy):
        fixed_model = teacher or _fixed_generator(args, tokenizer, phases)
        model, generator, network, optimizer = _make(args, config, source, corpus, objective, fixed_model, strategy)
    del source
    trainer = Trainer(
        network,
        objective,
        optimizer,
        output,
        jit_compile=args.jit,
        keep=args.keep,
        strategy=strategy,
        accumulate=args.accumulate,
        peak=measure_peak_flops(args.precision) * num_replicas(strategy),
        flops_of=lambda batch: _flops(
            filter(None, (model, generator)), fixed_model, *batch["token_ids"].shape, batch["mask_labels"].shape[1]
        ),
    )
    if trainer.chief:
        record_settings(output, args, model, tokenizer, corpus)
    snapshots = (
        SnapshotWriter(
            output, lambda folder: checkpoints.save(folder, config, tokenizer, model, "float16"), last=args.steps
        )
        if args.snapshots
        else None
    )
    step = _train(args, trainer, phases, corpus, tokenizer, snapshots)
    if trainer.chief:
        advice = f"The checkpoint of step {step} is whole; free space and give the same command again."
        with writing(f"The model {output / 'model'}", advice):
            checkpoints.save(output / "model", config, tokenizer, model)
        if generator:
            with writing(f"The generator {output / 'generator'}", advice):
                checkpoints.save(output / "generator", generator.bert_config, tokenizer, generator)
        print(f"Step {step}: model written to {output / 'model'}.", flush=True)
    return STOPPED if trainer.stopped and step < args.steps else 0


def _records(args):
    """The `Records` to train on; sets their settings in `args`."""
    from bert_tf.pretraining.data.records_feed import Records

    if args.phases:
        raise ValueError("--phases needs --text; prepared records have one length.")
    records = Records(args.records)
    settings, masks = records.settings, records.settings.masks
    args.objective, args.length, args.mask_rate = settings.objective, settings.length, masks.rate
    args.whole_words, args.ngram, args.max_predictions = masks.whole_words, masks.ngram, masks.most
    args.language = settings.language
    return records


def _prepare(args, tokenizer, strategy):
    """The tokenized corpus.

    The chief makes it. The other machines wait and then read it, or make their own if they do not share the folder.
    """
    from bert_tf.pretraining.data.corpus import prepare_corpus
    from bert_tf.pretraining.data.documents import find_files
    from bert_tf.training.strategy import is_chief, sum_over_workers

    def prepare():
        return prepare_corpus(
            find_files(args.text),
            tokenizer,
            args.corpus or Path(args.output) / "corpus",
            args.max_documents,
            progress=_say_prepared,
            text_field=args.field,
            language=args.language,
        )

    corpus = prepare() if is_chief(strategy) else None
    sum_over_workers(strategy, 1)
    return corpus or prepare()


def _make(args, config, source, corpus, objective, fixed_model, strategy):
    """(model, trained generator or None, network to train, built optimiser); call it in the scope of the strategy.

    The network is the model alone, or the model with a trained generator or with a fixed model: a teacher or a fixed
    generator.
    """
    from bert_tf.models import build_pretraining_model
    from bert_tf.pretraining.objectives.electra import make_generator
    from bert_tf.training.fused_ops import can_fuse, fuse
    from bert_tf.training.optimizers.registry import make_optimizer
    from bert_tf.training.optimizers.schedule import layer_factors, warmup_steps
    from bert_tf.training.precision import (
        apply_precision,
        build_policy,
        products_dtype,
        with_loss_scale,
    )
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


def _train(args, trainer, phases, corpus, tokenizer, snapshots):
    """Starts or resumes the training, up to the last step or `--stop-after`. Returns: the step reached."""
    from bert_tf.pretraining.data.feed import DataPosition, position_from_json, position_to_json
    from bert_tf.training.prefetch import prefetch

    state = trainer.restore()
    step, position = state["step"] if state else 0, DataPosition()
    longest = max((phase.length for phase in phases), default=args.length)
    if snapshots and trainer.chief:
        snapshots.remove_after(step if state else -1)
    if step:
        position, message = position_from_json(
            state["position"], _feed(args, corpus, tokenizer, longest, longest).division
        )
        if trainer.chief:
            print(f"Resuming after step {step}.{message}", flush=True)
    for phase in phases:
        goal = min(phase.last, args.stop_after or phase.last)
        if step >= goal:
            continue
        if step == phase.first and position.batch:
            # With another length a block has other batches, so the training continues with the next block.
            position = DataPosition(position.epoch, position.block + 1, 0)
        feed = _feed(args, corpus, tokenizer, phase.length, longest, position)
        step = trainer.train(
            prefetch(feed),
            step,
            goal,
            save_every=args.save_every,
            log_every=args.log_every,
            encode_position=lambda position: position_to_json(position, feed.division),
            describe_position=feed.describe,
            report=lambda record: _say_record(record, args.steps),
            snapshots=snapshots,
        )
        position = trainer.position
        if trainer.stopped or step < goal:
            break
    return step


def _feed(args, corpus, tokenizer, length, longest, position=None):
    """The feed of a phase. All phases have the blocks of the longest one, so that a position is valid in all."""
    from bert_tf.pretraining.data.feed import DataPosition, Feed, tokens_of_block
    from bert_tf.pretraining.data.records_feed import RecordsFeed

    position = position or DataPosition()
    if args.records:
        return RecordsFeed(corpus, args.batch_size, args.seed, position)
    masks = mask_settings(args)
    if isinstance(args.generator, str):
        # The fixed generator is not trained, so all chosen positions become [MASK].
        masks = dataclasses.replace(masks, mask_share=1.0, random_share=0.0)
    return Feed(
        corpus,
        tokenizer,
        args.batch_size,
        length,
        masks,
        args.seed,
        position,
        block_tokens=tokens_of_block(args.batch_size, longest),
        objective=args.objective,
    )


def _teacher(args):
    """(config, tokenizer, model) of the teacher, or None."""
    from bert_tf import checkpoints

    if not args.teacher:
        if args.student_layers is not None:
            raise ValueError("--student-layers starts from a teacher's layers and needs --teacher MODEL.")
        return None
    return checkpoints.read(checkpoints.find(args.teacher))


def _fixed_generator(args, tokenizer, phases):
    """The `BertModel` that --generator names; None if it is a share of the width, or not set.

    Raises: ValueError if its vocabulary or its input length does not fit the model.
    """
    from bert_tf import checkpoints
    from bert_tf.errors import require_head

    if not isinstance(args.generator, str):
        return None
    config, generator_tokenizer, generator = checkpoints.read(checkpoints.find(args.generator))
    require_head(generator.bert_heads, "mlm", f"--generator {args.generator}")
    if generator_tokenizer.vocab != tokenizer.vocab:
        raise ValueError(
            f"--generator {args.generator} has another vocabulary than the model, which could not read "
            "what it writes; give one with the same."
        )
    longest = max(phase.length for phase in phases)
    if longest > config.max_tokens:
        raise ValueError(
            f"--generator {args.generator} takes at most {config.max_tokens} tokens, and sequences of "
            f"{longest} were asked for."
        )
    return generator


def _share_or_model(text):
    """The value of --generator: a float, or the name of a model as str."""
    try:
        return float(text)
    except ValueError:
        return text


def _objective(args):
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


def _flops(trained_models, fixed_model, *shape):
    """The FLOPs of an update of the trained models, and of the forward pass of a fixed model, or None."""
    from bert_tf.flops import forward_flops, training_flops

    fixed = forward_flops(fixed_model.bert_config, fixed_model.bert_heads, *shape) if fixed_model else 0.0
    return fixed + sum(training_flops(model.bert_config, model.bert_heads, *shape) for model in trained_models)


def _say_prepared(documents, tokens):
    print(f"\rTokenized {documents:,} documents, {tokens:,} tokens", end="", flush=True)


def _say_record(record, steps):
    minutes_left = (steps - record["step"]) * record["seconds_per_step"] / 60
    keys = {name: f"{name}_accuracy" for name in ("mlm", "nsp", "sop", "replaced")} | {"found": "replaced_found"}
    tasks = "  ".join(f"{name} {record[key]:.3f}" for name, key in keys.items() if key in record)
    print(
        f"step {record['step']}/{steps}  loss {record['loss']:.3f}  {tasks}  "
        f"{record['tokens_per_second']:,.0f} tokens/s  "
        f"{record['peak_share']:.0%} of peak  {minutes_left:.0f} min left",
        flush=True,
    )
