"""Fine-tuning side by side with Transformers: the same weights, head, settings and order of the examples.

    python benchmarks/finetuning.py --model bert-small-uncased-embedded --glue stsb --train train.csv --dev
        dev.csv [--examples 1000] [--epochs 1] [--batch-size 16] [--reduced] [--threads 1] [--seeds 3]
        [--json FILE]
    python benchmarks/finetuning.py --task tag --model NAME --train train.conll --dev dev.conll
    python benchmarks/finetuning.py --task answer --model NAME --train squad.json --dev-share 0.1

Each side runs in a separate process. They take turns of a few updates, so that other work on the machine affects all
sides equally; on a busy machine the examples per second of CPU time are more reliable. "transformers" uses our batches
(rows of similar length, padded to one of a few lengths), "transformers, own batches" those that its Trainer makes by
default: random rows, padded to the longest. Both run Transformers' class for the task with PyTorch's AdamW. The table
has the speeds (without our first update of each length, which compiles, and without the first update of the others; of
long passages each window is an example) and the scores of each side on the dev set, over the seeds, computed by the
functions that `python -m bert_tf finetune` uses. Needs requirements-bench.txt.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from benchmarks.finetuning_peers import Ours, Theirs, network_from  # noqa: E402
from bert_tf.startup import lean_tensorflow  # noqa: E402

lean_tensorflow()  # in the process of each side too, which imports this file

SIDES = {"ours": Ours, "transformers": Theirs, "transformers, own batches": Theirs}
TASKS = ("classify", "tag", "answer")
TURN = 5


def main(arguments=None):
    options = parse(arguments)
    results = []
    for seed in range(options.seed, options.seed + options.seeds):
        results.append(measure(seed, options))
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    _say(results, options)
    return 0


def parse(arguments=None):
    """The parsed options, with the task's options for reading files; the others have the defaults of `finetune`."""
    from bert_tf.finetuning.tasks.registry import task_type

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], add_help=False)
    parser.add_argument("--task", default="classify", choices=TASKS)
    task = task_type(parser.parse_known_args(arguments)[0].task)
    parser.add_argument("--model", required=True)
    parser.add_argument("--train", required=True)
    dev = parser.add_mutually_exclusive_group(required=True)
    dev.add_argument("--dev")
    dev.add_argument("--dev-share", type=float, help="share of the training file that is held out as the dev set")
    parser.add_argument("--examples", type=int, default=1000, help="use the first N examples of the training file")
    parser.add_argument("--dev-examples", type=int, help="evaluate on the first N examples (default: all)")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--length", type=int, default=task.length)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--dropout", type=float, help="dropout rate, instead of the model's")
    parser.add_argument("--reduced", action="store_true", help="bfloat16 products here, autocast to bfloat16 there")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument(
        "--together", action="store_true", help="all sides in one process, which starts sooner: for scores"
    )
    parser.add_argument("--no-score", action="store_true", help="measure only the speed")
    parser.add_argument("--json", type=Path)
    task.add_reading_arguments(parser)
    parser.add_argument("-h", "--help", action="help")
    others = argparse.ArgumentParser()
    task.add_training_arguments(others)
    return parser.parse_args(arguments, others.parse_args([], argparse.Namespace(metric=None)))


def measure(seed, options):
    """One training of each side. Returns: dict side -> {"examples_per_second", "scores"}."""
    with tempfile.TemporaryDirectory() as folder:
        if options.together:
            for name in options.sides:
                _set_threads(name, options.threads)
            _write_start(folder, seed, options)
        else:
            _prepare(folder, seed, options)
        sides = {}
        try:
            for name in options.sides:
                sides[name] = (_begin if options.together else _Apart)(name, folder, seed, options)
            while any([side.turn() for side in sides.values()]):
                pass
            return {name: side.result() for name, side in sides.items()}
        finally:
            for side in sides.values():
                side.stop()


def _prepare(folder, seed, options):
    """Writes the start model for Transformers, with the same head for all sides, in a separate process."""
    process = multiprocessing.get_context("spawn").Process(target=_write_start, args=(folder, seed, options))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("the model to start from could not be written")


def _write_start(folder, seed, options):
    import keras

    keras.utils.set_random_seed(seed)
    write_start(folder, options)


def write_start(folder, options):
    """Writes the start model with a new head in Transformers' format."""
    from bert_tf import checkpoints
    from bert_tf.finetuning.task_folder import save_task

    config, tokenizer, source = checkpoints.read(checkpoints.find(options.model))
    if options.dropout is not None:
        config = config.replace(hidden_dropout_prob=options.dropout, attention_probs_dropout_prob=options.dropout)
    task, train, _ = read_data(options)
    settings = task.settings(options, train).on(config.architecture)
    network = network_from(config, source, task, settings)
    task.initialize_head(network.head, task.encode(train, tokenizer, settings, training=True), settings)
    save_task(folder, config, tokenizer, network, settings)


def read_data(options):
    """(task, training examples, dev examples)."""
    from bert_tf.finetuning.tasks.registry import task_type

    task = task_type(options.task)
    train = list(task.read(options.train, options))
    if options.dev:
        dev = list(task.read(options.dev, options))
    else:
        train, dev = task.split(train, options.dev_share)
    return task, train[: options.examples], dev[: options.dev_examples]


class _Apart:
    """The `Training` of a side in a separate process."""

    def __init__(self, name, folder, seed, options):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, folder, seed, options), daemon=True)
        self._process.start()
        theirs.close()  # so that reading fails here if the process ends before its first message
        try:
            self._pipe.recv()
        except EOFError:
            raise SystemExit(f"{name} did not start; what it said is above") from None

    def turn(self):
        self._pipe.send("turn")
        return self._pipe.recv()

    def result(self):
        self._pipe.send("result")
        return self._pipe.recv()

    def stop(self):
        self._process.terminate()
        self._process.join()


def _serve(pipe, name, folder, seed, options):
    _set_threads(name, options.threads)
    training = _begin(name, folder, seed, options)
    pipe.send("ready")
    while True:
        pipe.send(training.turn() if pipe.recv() == "turn" else training.result())


def _set_threads(name, threads):
    """Sets the threads of a side in this process, before any computation."""
    if name == "ours":
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
    else:
        import torch

        torch.set_num_threads(threads)


def _begin(name, folder, seed, options):
    """The `Training` of a side, with seeded dropout."""
    if name == "ours":
        import keras

        keras.utils.set_random_seed(seed)
    else:
        import torch

        torch.manual_seed(seed)
    return Training(name, folder, seed, options)


class Training:
    """One side's training in this process.

    Attributes: side: `Ours` or `Theirs`. batches: the training batches, in order. updates: how many.
    """

    def __init__(self, name, folder, seed, options):
        from bert_tf.finetuning.epoch_feed import EpochFeed
        from bert_tf.finetuning.task_settings import read_settings
        from bert_tf.tokenizers import Tokenizer

        self._task_type, train, self._dev = read_data(options)
        self._settings, self._tokenizer = read_settings(folder), Tokenizer.from_folder(folder)
        rows = self._task_type.encode(train, self._tokenizer, self._settings, training=True)
        feed = EpochFeed(rows, options.batch_size, seed)
        self.updates = options.epochs * feed.steps
        self.batches = (_random_batches if "own batches" in name else _our_batches)(rows, feed, options, seed)
        self.side = SIDES[name](folder, self._task_type, self._settings, options, self.updates)
        self._left, self._score, self._compiles = self.updates, not options.no_score, name == "ours"
        self._seen, self._seconds, self._cpu, self._examples = set(), 0.0, 0.0, 0

    def turn(self):
        """Runs a few updates. Returns: whether more updates are left."""
        for _ in range(min(TURN, self._left)):
            batch = next(self.batches)
            length = batch["token_ids"].shape[1]
            began, begun_cpu = time.perf_counter(), time.process_time()
            self.side.update(batch)
            if length in self._seen or self._seen and not self._compiles:  # the others only warm up once
                self._seconds += time.perf_counter() - began
                self._cpu += time.process_time() - begun_cpu
                self._examples += int((batch["weights"] > 0).sum())
            self._seen.add(length)
            self._left -= 1
        return self._left > 0

    def result(self):
        """Speeds and scores so far: dict."""
        return {
            "examples_per_second": self._examples / max(self._seconds, 1e-9),
            "examples_per_cpu_second": self._examples / max(self._cpu, 1e-9),
            "scores": self.scores() if self._score else {},
        }

    def scores(self):
        """The current scores of the side by the task's metrics."""
        from bert_tf.finetuning.task_model import run_rows

        rows = self._task_type.encode(self._dev, self._tokenizer, self._settings)
        outputs = run_rows(rows, 32, self.side.forward)
        settings = self._task_type.tune(self._dev, outputs, rows, self._settings)
        return self._task_type.score(self._dev, self._task_type.decode(outputs, rows, self._dev, settings), settings)

    def stop(self):
        """Does nothing: a training in this process leaves no other process to end."""


def _our_batches(rows, feed, options, seed):
    return (batch for batch, _ in feed.from_step(0))


def _random_batches(rows, feed, options, seed):
    for epoch in range(options.epochs):
        order = np.random.default_rng((seed, epoch)).permutation(len(rows))
        for first in range(0, len(order), options.batch_size):
            yield rows.batch(order[first : first + options.batch_size])


def _say(results, options):
    what = f"GLUE {options.glue}" if getattr(options, "glue", None) else options.task
    print(
        f"{options.model}, {what}, {options.examples} examples x {options.epochs}, batches of "
        f"{options.batch_size}, {options.threads} threads, {'reduced' if options.reduced else 'float32'}"
    )
    for name in results[0]:
        speeds_text = []
        for kind, words in (
            ("examples_per_second", "examples/s"),
            ("examples_per_cpu_second", "a second of CPU"),
        ):
            speeds = {side: statistics.median(one[side][kind] for one in results) for side in results[0]}
            ratio = f" (ours {speeds['ours'] / speeds[name]:.2f} times)" if "ours" in speeds and name != "ours" else ""
            speeds_text.append(f"{speeds[name]:8.2f} {words}{ratio}")
        print(f"  {name:28} {'   '.join(speeds_text)}")
        for metric in results[0][name]["scores"]:
            values = [one[name]["scores"][metric] for one in results]
            spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
            ours = [one["ours"]["scores"][metric] for one in results] if "ours" in results[0] else values
            more = f" (ours {statistics.mean(ours) - statistics.mean(values):+.4f})" if name != "ours" else ""
            print(f"      {metric:24} {statistics.mean(values):.4f}{spread}{more}")


if __name__ == "__main__":
    raise SystemExit(main())
