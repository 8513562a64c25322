"""`python -m bert_tf pretrain`: pre-trains a model on raw text or prepared records; a run can be resumed."""

import argparse
import contextlib
import dataclasses
import sys
from pathlib import Path

from bert_tf.cli.prepare import LENGTH, mask_settings
from bert_tf.cli.pretrain.networks import (
    check_fixed_model,
    make_networks,
    read_fixed_generator,
    read_teacher,
    training_objective,
    update_flops,
)
from bert_tf.cli.pretrain.options import add_arguments, set_example_defaults
from bert_tf.folder_lock import locked_folder
from bert_tf.pretraining.initialization import check_objective_fits, start
from bert_tf.pretraining.run_settings import check_embeddings, check_run, record_settings

__all__ = ["add_arguments", "run"]


def run(args: argparse.Namespace) -> int:
    """Trains with the parsed options and writes the model to `OUTPUT/model`.

    Args:
        args: argparse.Namespace. The parsed options.

    Returns: int, the exit code: 0 at --steps or --stop-after, `training.loop.STOPPED` if a signal came before.
    """
    from bert_tf.startup import import_tensorflow

    import_tensorflow()
    from bert_tf.training.strategy import choose, is_chief, make_strategy, use_threads

    name = choose(args.strategy)
    use_threads(args.threads, one_device=name == "one")
    # Before any other use of TensorFlow, which connects to the other machines only when it starts.
    strategy = make_strategy(name)
    with locked_folder(args.output, "pretrain") if is_chief(strategy) else contextlib.nullcontext():
        return _run(args, strategy)


def _run(args, strategy):
    """Does the work of `run` while this process holds the lock of the folder."""
    import keras

    from bert_tf import checkpoints
    from bert_tf.pretraining.data.packing import check_documents
    from bert_tf.pretraining.phases import plan_phases
    from bert_tf.training.checkpoint import writing
    from bert_tf.training.logs.trackers import check_tracker, open_tracker
    from bert_tf.training.loop import STOPPED, Trainer
    from bert_tf.training.optimizers.registry import check_rates
    from bert_tf.training.peak_flops import measure_peak_flops
    from bert_tf.training.snapshots import SnapshotWriter
    from bert_tf.training.step import check_batch_size
    from bert_tf.training.strategy import num_replicas, scope

    check_tracker(args.log_to)
    check_batch_size(args.batch_size, strategy, args.accumulate)
    check_rates(args.learning_rate, args.weight_decay)
    keras.utils.set_random_seed(args.seed)
    output = Path(args.output)
    with scope(strategy):
        teacher_model = read_teacher(args)
    teacher = teacher_model and teacher_model[2]
    records = _records(args) if args.records else None
    set_example_defaults(args)
    config, tokenizer, source = start(args, teacher_model)
    args.length = min(LENGTH, config.max_tokens) if args.length is None else args.length
    if records:
        records.check_vocabulary(tokenizer)
        if args.length > config.max_tokens:
            raise ValueError(
                f"{args.records} was prepared with {args.length} tokens, and this model takes {config.max_tokens}: "
                f"prepare it again with --length {config.max_tokens} or less, or take a model with more --positions."
            )
    objective = training_objective(args)
    check_objective_fits(config, args.objective, objective.heads)
    check_run(output, args, tokenizer, records, objective.heads)
    check_embeddings(output, config)
    phases = plan_phases(args.phases, args.length, args.steps, config.max_tokens)
    if teacher_model:
        check_fixed_model(f"--teacher {args.teacher}", teacher_model, tokenizer, phases, objective.teacher_heads)
    corpus = records or _prepare(args, tokenizer, strategy)
    check_documents(args.objective, corpus.manifest.get("documents"))
    with scope(strategy):
        fixed_model = teacher or read_fixed_generator(args, tokenizer, phases)
        model, generator, network, optimizer = make_networks(
            args, _with_dropout(config, args.dropout), source, corpus, objective, fixed_model, strategy
        )
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
        flops_of=lambda batch: update_flops(
            model,
            generator,
            fixed_model,
            args.freeze_layers,
            (*batch["token_ids"].shape, batch["mask_labels"].shape[1]),
        ),
    )
    state = trainer.restore()
    if trainer.chief:
        # Only now, so that a run that `restore` refuses to resume keeps its settings, which `export` reads.
        record_settings(output, args, config, model.bert_heads, tokenizer, corpus)
    snapshots = (
        SnapshotWriter(
            output, lambda folder: checkpoints.save(folder, config, tokenizer, model, "float16"), last=args.steps
        )
        if args.snapshots
        else None
    )
    with open_tracker(args.log_to if trainer.chief else None, output, vars(args)) as tracker:
        step = _train(args, trainer, state, phases, corpus, tokenizer, snapshots, tracker)
    if trainer.chief:
        advice = f"The checkpoint of step {step} is complete; free some space and run the same command again."
        with writing(f"The model {output / 'model'}", advice):
            checkpoints.save(output / "model", config, tokenizer, model)
        if generator:
            with writing(f"The generator {output / 'generator'}", advice):
                own_config = _with_dropout(
                    generator.bert_config, config.hidden_dropout_prob, config.attention_probs_dropout_prob
                )
                checkpoints.save(output / "generator", own_config, tokenizer, generator)
        print(f"Step {step}: model written to {output / 'model'}.", flush=True)
    return STOPPED if trainer.stopped and step < args.steps else 0


def _with_dropout(config, rate, of_attention=None):
    """The settings with other dropout rates, for this training alone: the saved model keeps its own. None: as they are.

    Args:
        config: `BertConfig`.
        rate: float or None.
        of_attention: float. The rate of the attention probabilities; None for `rate`.
    """
    if rate is None:
        return config
    of_attention = rate if of_attention is None else of_attention
    return config.replace(hidden_dropout_prob=rate, attention_probs_dropout_prob=of_attention)


def _records(args):
    """The `Records` to train on; copies their settings into `args`."""
    from bert_tf.pretraining.data.records_feed import Records

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    if args.phases:
        raise ValueError("--phases needs --text; prepared records have one length.")
    for name in ("max_documents", "corpus", "field"):
        if getattr(args, name) != parser.get_default(name):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} needs --text; the text of {args.records} is prepared already: leave it out.")
    records = Records(args.records)
    settings, masks = records.settings, records.settings.masks
    made_with = {
        "objective": settings.objective,
        "length": settings.length,
        "mask_rate": masks.rate,
        "whole_words": masks.whole_words,
        "ngram": masks.ngram,
        "max_predictions": masks.most,
        "language": settings.language,
    }
    for name, recorded in made_with.items():
        if (asked := getattr(args, name)) not in (None, recorded):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} is {asked}, and {args.records} was prepared with {recorded}: leave it out.")
        setattr(args, name, recorded)
    return records


def _prepare(args, tokenizer, strategy):
    """The tokenized corpus.

    The chief makes it. The other machines wait and then read it, or make another one if they do not share the folder.
    """
    from bert_tf.pretraining.data.corpus import prepare_corpus
    from bert_tf.pretraining.data.documents import find_files
    from bert_tf.training.strategy import is_chief, sum_over_workers

    def prepare():
        with _line_of_progress() as progress:
            return prepare_corpus(
                find_files(args.text),
                tokenizer,
                args.corpus or Path(args.output) / "corpus",
                args.max_documents,
                progress=progress,
                text_field=args.field,
                language=args.language,
            )

    corpus = prepare() if is_chief(strategy) else None
    sum_over_workers(strategy, 1)
    return corpus or prepare()


def _train(args, trainer, state, phases, corpus, tokenizer, snapshots, tracker):
    """Starts the training, or resumes it from the restored state; up to the last step or `--stop-after`.

    Returns: the step reached.
    """
    from bert_tf.pretraining.data.feed import DataPosition, position_from_json, position_to_json
    from bert_tf.training.prefetch import prefetch

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

    def report(record):
        _print_record(record, args.steps)
        tracker.log(record)

    for phase in phases:
        goal = min(phase.last, args.stop_after or phase.last)
        if step >= goal:
            continue
        if step == phase.first and position.batch:
            # A block has other batches at another length, so the training continues with the next block.
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
            report=report,
            snapshots=snapshots,
        )
        position = trainer.position
        if trainer.stopped or step < goal:
            break
    return step


def _feed(args, corpus, tokenizer, length, longest, position=None):
    """The batches of a phase. All phases use the blocks of the longest phase, so a position is valid in all of them."""
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


@contextlib.contextmanager
def _line_of_progress():
    """Yields a callable (documents, tokens) that prints on one line, which ends with the block; None in a log."""
    if not sys.stdout.isatty():
        yield None
        return
    try:
        yield lambda documents, tokens: print(
            f"\rTokenized {documents:,} documents, {tokens:,} tokens", end="", flush=True
        )
    finally:
        print()


def _print_record(record, steps):
    minutes_left = (steps - record["step"]) * record["seconds_per_step"] / 60
    keys = {name: f"{name}_accuracy" for name in ("mlm", "nsp", "sop", "replaced")} | {"found": "replaced_found"}
    tasks = "  ".join(f"{name} {record[key]:.3f}" for name, key in keys.items() if key in record)
    print(
        f"step {record['step']}/{steps}  loss {record['loss']:.3f}  {tasks}  "
        f"{record['tokens_per_second']:,.0f} tokens/s  "
        f"{record['peak_share']:.0%} of peak  {minutes_left:.0f} min left",
        flush=True,
    )
