"""Fine-tuning: epochs, evaluation on the dev set, keeping the best model, and resuming.

The output folder holds the best model so far (ready to load) and `run/`: checkpoints, the log, and `rounds.json` with
the scores after each round. A round is an epoch, or `evaluate_every` updates. After a stop or a crash the same call
continues at the last checkpoint, and evaluates every round that was not evaluated.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import shutil
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.checkpoints.saving import DTYPES
from bert_tf.errors import TaskError
from bert_tf.files import foreign_model, write_json
from bert_tf.finetuning.learning_record import read_rounds
from bert_tf.finetuning.task_settings import read_settings, score_text, selection_score
from bert_tf.folder_lock import locked_folder
from bert_tf.model_outputs import INPUTS
from bert_tf.resources.remote import is_copy, original_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.task import Task


_SETTINGS = "settings.json"
_RUN = "run"  # the folder of the run, in that of the model
# Attributes of examples that name their file and line; the training does not depend on them.
_SOURCE_ATTRIBUTES = ("where", "source")
#: Settings that may change when a run is resumed.
_CHANGEABLE = ("log_every", "log_to", "save_every", "strategy")


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fine-tuning. The defaults are the paper's (Devlin et al. 2019, section A.3).

    Args:
        epochs: int. Epochs over the training examples.
        learning_rate: float. The peak of the learning rate.
        batch_size: int. Rows of an update, over all devices.
        seed: int. The seed of the head, the order and the dropout.
        warmup: float. Below 1 the share of the warm-up updates, else their number.
        weight_decay: float. As in `training.optimizers.registry`.
        optimizer: str. As in `training.optimizers.registry`.
        layer_decay: float. The factor of the learning rate from each layer to the one below.
        freeze_layers: int. The embeddings and this number of the lowest layers are frozen; 0 freezes nothing.
        dropout: float. Replaces the dropout of the model; None keeps it.
        precision: str. As in pre-training.
        strategy: str. As in pre-training.
        accumulate: int. As in pre-training.
        jit: bool. As in pre-training.
        patience: int. The training stops after this number of rounds without a better score; None for never.
        evaluate_every: int. Updates between two evaluations; None for an epoch.
        lengths: int. The number of lengths that batches are padded to.
        log_every: int. Updates between two log records.
        log_to: str. A tracker that gets the log and the dev scores, one of `trackers.TRACKERS`; or None.
        save_every: int. Updates between two checkpoints.
        store: str. The dtype in which the model is saved.
        delta: bool. Whether only the trained weights are saved.
        lora: int. The rank of the updates of the encoder's matrices, which are trained and saved in the place of the
            matrices (`training.lora`); 0 to train the matrices.
        add_tokens: tuple of str. Words that are added to the vocabulary (`checkpoints.added_words`).

    Raises: TaskError if a value is out of range.

    Example:
        settings = FitSettings(epochs=2, learning_rate=2e-5, batch_size=16)
    """

    epochs: int = 3
    learning_rate: float = 3e-5
    batch_size: int = 32
    seed: int = 0
    warmup: float = 0.1
    weight_decay: float = 0.01
    optimizer: str = "adamw"
    layer_decay: float = 1.0
    freeze_layers: int = 0
    dropout: float | None = None
    precision: str = "float32"
    strategy: str = "auto"
    accumulate: int = 1
    jit: bool = False
    patience: int | None = None
    evaluate_every: int | None = None
    lengths: int = 4
    log_every: int = 20
    log_to: str | None = None
    save_every: int = 500
    store: str = "float32"
    delta: bool = False
    lora: int = 0
    add_tokens: tuple[str, ...] = ()

    @property
    def stores_delta(self) -> bool:
        """Whether the folder holds only what was trained, and needs the model that the training started from."""
        return self.delta or self.lora > 0

    def __post_init__(self):
        for name in (
            "epochs",
            "batch_size",
            "lengths",
            "log_every",
            "save_every",
            "patience",
            "evaluate_every",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise TaskError(f"--{name.replace('_', '-')} is {value}; it must be 1 or more.")
        if not 0 <= self.seed < 2**32:
            raise TaskError(f"--seed is {self.seed}; it must be from 0 to {2**32 - 1}.")
        if self.store not in DTYPES:
            raise TaskError(f"--store is {self.store!r}; choose from {', '.join(DTYPES)}.")
        if not 0 < self.learning_rate < math.inf:
            raise TaskError(f"--learning-rate is {self.learning_rate}; it must be above 0.")
        if not 0 <= self.weight_decay < math.inf:
            raise TaskError(f"--weight-decay is {self.weight_decay}; it must be 0 or more.")
        if self.lora < 0:
            raise TaskError(f"--lora is {self.lora}; it must be 1 or more, the rank of the updates.")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise TaskError(f"--dropout is {self.dropout}; it must be from 0 to below 1.")


@dataclass(frozen=True)
class FitResult:
    """The result of a fine-tuning run.

    Attributes:
        rounds: list of dicts, as in `rounds.json`.
        finished: bool. False if a signal stopped the run.
        steps: int. The number of updates done.
        settings: the `TaskSettings` of the model in the folder.
        chief: bool. Whether this process writes the files; with several machines the others must not write.
        stopped: bool. Whether a signal came, also during the last update.
    """

    rounds: list
    finished: bool
    steps: int
    settings: object
    chief: bool
    stopped: bool = False


def fit(
    task_type: Task,
    start: str | Path,
    train: Sequence[Any],
    dev: Sequence[Any],
    settings: TaskSettings,
    how: FitSettings,
    output: str | Path,
    say: Callable[[str], object] = print,
    copied_to: Path | None = None,
) -> FitResult:
    """Fine-tunes a model, or resumes a stopped run.

    Args:
        task_type: `Task`.
        start: str or Path. The name or folder of the model to start from.
        train: list of examples.
        dev: list of examples; if it is empty, the model of the last epoch is kept.
        settings: `TaskSettings`.
        how: `FitSettings`.
        output: str or Path. The folder to write to.
        say: callable that gets each line of progress.
        copied_to: Path or None. The folder to which the best of several runs is copied; a run in it must have the same
            settings and examples, with any seed.

    Returns: `FitResult`. The model is in `output`; `bert_tf.load` reads it.

    Raises: TaskError, CheckpointError, DataError or StrategyError; FolderInUse if another run is writing to `output`.
    """
    from bert_tf.training.logs.trackers import open_tracker
    from bert_tf.training.strategy import is_chief, make_strategy

    strategy = make_strategy(how.strategy)  # before anything else in TensorFlow
    run = _Run(task_type, start, settings, how, Path(output), strategy, say, copied_to)
    run.prepare(train, dev)
    with locked_folder(run.folder, "finetune", run.output) if is_chief(strategy) else nullcontext():
        run.begin()
        log_to = how.log_to if is_chief(strategy) else None
        with open_tracker(log_to, run.folder, run.run_settings, run.output.name) as tracker:
            return run.train(tracker)


def examples_hash(examples: Sequence[Any]) -> str:
    """The SHA-256 of the texts and targets of examples in their order; their file names do not count.

    Args:
        examples: list of examples.

    Returns: str, hexadecimal.
    """
    digest = hashlib.sha256()
    for example in examples:
        values = [
            getattr(example, item.name) for item in dataclasses.fields(example) if item.name not in _SOURCE_ATTRIBUTES
        ]
        digest.update(repr(values).encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()


def refuse_foreign_model(output: Path) -> None:
    """Raises TaskError if a folder holds a model that no run in it has trained: the new model would replace it."""
    if problem := foreign_model(output, output / _RUN / _SETTINGS):
        raise TaskError(problem)


class _Run:
    """One call of `fit`."""

    def __init__(self, task_type, start, settings, how, output, strategy, say, copied_to):
        self.task_type, self.start, self.settings, self.how = task_type, start, settings, how
        self.output, self.strategy, self.say, self.copied_to = output, strategy, say, copied_to
        self.folder = output / _RUN

    def prepare(self, train, dev):
        """Makes the model, the encoded examples and the trainer."""
        import keras

        from bert_tf.checkpoints import find
        from bert_tf.checkpoints.delta import check_base
        from bert_tf.finetuning.epoch_feed import EpochFeed
        from bert_tf.training.loop import Trainer
        from bert_tf.training.step import check_batch_size
        from bert_tf.training.strategy import num_replicas, scope

        how = self.how
        check_batch_size(how.batch_size, self.strategy, how.accumulate)
        fewest = self.task_type.fewest_rows(self.settings) * num_replicas(self.strategy) * how.accumulate
        if how.batch_size < fewest:
            raise TaskError(
                "Each of these examples learns from the others of its part of the batch, and in a batch of "
                f"{how.batch_size} it would be alone there: give a --batch-size of {fewest} or more."
            )
        if dev:
            self.task_type.check_metric(self.settings, dev)
        if how.stores_delta:
            if is_copy(self.start):
                raise TaskError(
                    f"--delta and --lora need the model at a place that stays, and {original_path(self.start)} lies in "
                    "a bucket: copy it to a local folder, or leave them out."
                )
            if how.add_tokens:
                raise TaskError(
                    "--add-tokens makes larger tables than the base model has; leave --delta and --lora out."
                )
            check_base(self.start)
        keras.utils.set_random_seed(how.seed)
        self.config, self.tokenizer, source = self._read(find(self.start))
        self.settings = self.settings.on(self.config.architecture)
        if how.lora:
            self.settings = self.settings.replace(extra={**self.settings.extra, "lora_rank": how.lora})
        if self.settings.max_length > self.config.max_tokens:
            raise TaskError(
                f"--length is {self.settings.max_length}; this model reads at most {self.config.max_tokens} tokens."
            )
        self.run_settings = self._run_settings(train, dev)
        self._check_run()
        rows = self.task_type.encode(train, self.tokenizer, self.settings, training=True)
        self.feed = EpochFeed(rows, how.batch_size, how.seed, how.lengths, self.config.max_tokens)
        self.dev = dev
        self.dev_rows = self.task_type.encode(dev, self.tokenizer, self.settings) if dev else None
        self.total = how.epochs * self.feed.steps
        with scope(self.strategy):
            self.network, optimizer = self._make_network(source, rows)
        del source
        self.trainer = Trainer(
            self.network,
            self.task_type.objective(self.settings),
            optimizer,
            self.folder,
            jit_compile=how.jit,
            keep=1,
            strategy=self.strategy,
            accumulate=how.accumulate,
        )

    def _read(self, folder):
        """(config, tokenizer, `BertModel`) of the model to start from, with the words that are added."""
        from bert_tf.checkpoints import read
        from bert_tf.checkpoints.added_words import with_words
        from bert_tf.checkpoints.reading import read_stored

        if not self.how.add_tokens:
            return read(folder)
        config, tokenizer, stored = with_words(*read_stored(folder), self.how.add_tokens)
        return config, tokenizer, stored.model

    def begin(self):
        """Saves the settings of the run. Only here, so that settings refused by `prepare` leave no file behind."""
        self._check_run()  # again: another run may have started and ended since
        path = self.folder / _SETTINGS
        if self.trainer.chief and not path.is_file():
            write_json(path, {**self.run_settings, "updates": self.total})

    def _make_network(self, source, rows):
        """(network with the weights of the source, built optimiser)."""
        from bert_tf.finetuning.task_network import build_network
        from bert_tf.training.lora import add_lora
        from bert_tf.training.optimizers.registry import make_optimizer
        from bert_tf.training.optimizers.schedule import layer_factors, warmup_steps
        from bert_tf.training.precision import (
            apply_precision,
            build_policy,
            products_dtype,
            with_loss_scale,
        )
        from bert_tf.training.weights import copy_weights, freeze

        how, config = self.how, self.config
        if how.dropout is not None:
            config = config.replace(hidden_dropout_prob=how.dropout, attention_probs_dropout_prob=how.dropout)
        network = build_network(config, self.task_type, self.settings, build_policy(how.precision))
        copy_weights(network.bert, source)
        self.task_type.initialize_head(network.head, rows, self.settings)
        freeze(network, how.freeze_layers)
        if how.lora:
            add_lora(network, how.lora, how.freeze_layers)
        # The head stays in float32: it costs little, and the loss is computed from its logits.
        apply_precision(network.bert, how.precision)
        optimizer = make_optimizer(
            network.trainable_variables,
            how.learning_rate,
            self.total,
            warmup_steps(how.warmup, self.total),
            how.weight_decay,
            how.optimizer,
            layer_factors(network, how.layer_decay),
            products_dtype(how.precision),
        )
        return network, with_loss_scale(optimizer, network.trainable_variables, how.precision)

    def _run_settings(self, train, dev):
        """The settings and hashes of the examples, as in settings.json."""
        run_settings = {
            "start": original_path(self.start),
            "task": self.settings.to_dict(),
            "train": len(train),
            "dev": len(dev),
            "train_sha256": examples_hash(train),
            "dev_sha256": examples_hash(dev),
            **{name: value for name, value in dataclasses.asdict(self.how).items() if name not in _CHANGEABLE},
        }
        return json.loads(json.dumps(run_settings))

    def _check_run(self):
        """Raises TaskError if the folder holds a run with other settings or examples, or a model without a run."""
        self._check_folder(self.output)
        if self.copied_to is not None:
            self._check_folder(self.copied_to, any_of=("seed",))

    def _check_folder(self, output, any_of=()):
        refuse_foreign_model(output)
        path = output / _RUN / _SETTINGS
        if not path.is_file():
            return
        saved, current = json.loads(path.read_text(encoding="utf-8")), self.run_settings
        # A setting that is missing was not saved yet by the version that started the run.
        changed = sorted(name for name in current.keys() & saved.keys() - any_of if saved[name] != current[name])
        if changed:
            raise TaskError(
                f"{output} holds a run with another {changed[0]} "
                f"({str(saved[changed[0]]):.80}, not {str(current[changed[0]]):.80}); give "
                "another --output, or the settings and examples it was made with."
            )

    def train(self, tracker):
        """Trains and evaluates the remaining rounds. Returns: `FitResult`."""
        self.tracker = tracker
        from bert_tf.training.prefetch import prefetch

        rounds = self._read_rounds()
        state = self.trainer.restore() or {"step": 0}
        step = rounds[-1]["step"] if rounds and rounds[-1]["last"] else state["step"]
        if step and self.trainer.chief:
            self.say(f"Going on after update {step} of {self.total}.")
        batches = prefetch(self.feed.from_step(step))
        for end in self._ends():
            if any(record["step"] == end for record in rounds):
                if rounds[-1]["last"]:
                    break
                continue
            if step < end:
                step = self.trainer.train(
                    batches,
                    step,
                    end,
                    encode_position=int,
                    save_every=self.how.save_every,
                    log_every=self.how.log_every,
                    report=self._say_record,
                    advice="give another --output with a lower --learning-rate",
                )
            if self.trainer.stopped and step < self.total:
                return self._result(rounds, False, step)
            # A model that is half written, or an evaluation of minutes, is not given up.
            with self.trainer.noting_signals():
                rounds.append(self._evaluate(end, rounds))
                if self.trainer.chief:
                    write_json(self.folder / "rounds.json", {"rounds": rounds})
            if rounds[-1]["last"]:
                break
            if self.trainer.stopped:
                return self._result(rounds, False, step)
        if self.trainer.chief:
            shutil.rmtree(self.folder / "checkpoints", ignore_errors=True)
        return self._result(rounds, True, step)

    def _result(self, rounds, finished, step):
        # Later rounds than the best one have tuned the settings to models that were not kept.
        settings = read_settings(self.output) if rounds else None
        return FitResult(rounds, finished, step, settings or self.settings, self.trainer.chief, self.trainer.stopped)

    def _read_rounds(self):
        path = self.folder / "rounds.json"
        return read_rounds(path) if path.is_file() else []

    def _ends(self):
        """The numbers of updates after which a round ends, ascending."""
        every = self.how.evaluate_every or self.feed.steps
        return sorted({*range(every, self.total, every), self.total})

    def _evaluate(self, step, rounds):
        """Makes the record of a round; saves the model if it is the best so far."""
        from bert_tf.training.checkpoint import writing
        from bert_tf.training.strategy import sum_over_workers

        scores = self._scores()
        previous = [selection_score(record["dev"], self.settings.metric) for record in rounds]
        score, best_before = selection_score(scores, self.settings.metric), max(previous, default=-math.inf)
        # Without a score, or if it is undefined (-inf), the latest model is kept.
        best = score > best_before or score == best_before == -math.inf
        if best and self.trainer.chief:
            with writing(
                f"The model {self.output}",
                f"The checkpoint of update {step} is whole; free space and give the same command again.",
            ):
                self.save()
        rounds_since_best = 0 if best else len(previous) - int(np.argmax(previous))
        last = step >= self.total or (self.how.patience is not None and rounds_since_best >= self.how.patience)
        # The chief decides: a processor of another kind can score otherwise, and one that goes on alone waits forever.
        last = sum_over_workers(self.strategy, last and self.trainer.chief) > 0
        record = {
            "step": step,
            "epoch": round(step / self.feed.steps, 3),
            "dev": scores,
            "best": best,
            "last": last,
        }
        if self.trainer.chief:
            self.tracker.log({"step": step, **{f"dev_{name}": value for name, value in scores.items()}})
            scores_text = "  ".join(f"{name} {score_text(value)}" for name, value in scores.items())
            self.say(f"after epoch {record['epoch']:g}  {scores_text or 'done'}{'  (best)' if best and scores else ''}")
        return record

    def _scores(self):
        if not self.dev:
            return {}
        from bert_tf.finetuning.task_model import run_rows

        assert self.dev_rows is not None
        outputs = run_rows(self.dev_rows, max(32, self.how.batch_size), self._forward())
        self.settings = self.task_type.tune(self.dev, outputs, self.dev_rows, self.settings)
        predictions = self.task_type.decode(outputs, self.dev_rows, self.dev, self.settings)
        return self.task_type.score(self.dev, predictions, self.settings)

    def _forward(self):
        if not hasattr(self, "_compiled"):
            import tensorflow as tf

            shape = (None, None, None) if self.task_type.several else (None, None)
            signature = {name: tf.TensorSpec(shape, tf.int32) for name in INPUTS}
            self._compiled = tf.function(
                lambda batch: self.network(batch, training=False),
                input_signature=[signature],
                autograph=False,
            )
        return lambda batch: {
            name: np.asarray(value)
            for name, value in self._compiled({name: batch[name].astype(np.int32) for name in INPUTS}).items()
        }

    def save(self):
        """Writes the current model to the output folder."""
        from bert_tf.finetuning.task_folder import save_task

        save_task(
            self.output,
            self.config,
            self.tokenizer,
            self.network,
            self.settings,
            dtype=self.how.store,
            delta_of=self.start if self.how.stores_delta else None,
        )

    def _say_record(self, record):
        minutes_left = (self.total - record["step"]) * record["seconds_per_step"] / 60
        accuracy = f"  accuracy {record['accuracy']:.3f}" if "accuracy" in record else ""
        self.say(
            f"update {record['step']}/{self.total}  loss {record['loss']:.4f}{accuracy}  "
            f"{record['tokens_per_second']:,.0f} tokens/s  {minutes_left:.0f} min left"
        )
        self.tracker.log(record)
