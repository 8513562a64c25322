"""Fine-tuning side by side with Transformers: the same weights, head, settings and order of the examples.

    python benchmarks/finetuning.py --model bert-small-uncased-embedded --glue stsb --train train.csv --dev
        dev.csv [--examples 1000] [--epochs 1] [--batch-size 16] [--reduced] [--threads 1] [--seeds 3] [--json
        FILE]

Every side is a process of its own; they take turns of a few updates, so that what else the machine does falls
on all alike; where others use the machine too, the examples a second of CPU time tell more. "transformers"
gets our batches (rows of like length, padded to one of a few lengths), "transformers, own batches" what its
Trainer makes by default: rows at random, padded to the longest. Both run BertForSequenceClassification with
PyTorch's AdamW. The table has the speeds (without our first update of each length, which compiles, and
without the others' first one) and each side's scores on the dev set, over the seeds. Needs
requirements-bench.txt.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

INPUTS = ("token_ids", "segment_ids", "padding_mask")
TURN = 5


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--glue", required=True)
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--examples", type=int, default=1000, help="of the training file, the first so many")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument(
        "--reduced", action="store_true", help="bfloat16 products here, autocast to bfloat16 there"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    parser.add_argument("--no-score", action="store_true", help="speed alone")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    results = [measure(seed, options) for seed in range(options.seeds)]
    _say(results, options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 0


def measure(seed, options):
    """One training of each side. Returns: dict side -> {"examples_per_second", "scores"}."""
    with tempfile.TemporaryDirectory() as folder:
        _prepare(folder, seed, options)
        sides = {name: _Side(name, folder, seed, options) for name in options.sides}
        try:
            while any([side.turn() for side in sides.values()]):
                pass
            return {name: side.result() for name, side in sides.items()}
        finally:
            for side in sides.values():
                side.stop()


def _prepare(folder, seed, options):
    """The start as Transformers reads it, and a head for all, in a process that ends."""
    process = multiprocessing.get_context("spawn").Process(target=_write_start, args=(folder, seed, options))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit("the model to start from could not be written")


def _write_start(folder, seed, options):
    import keras

    from bert_tf import checkpoints
    from bert_tf.finetune.folder import save_task

    family, train, _, settings = _data(options)
    config, tokenizer, source = checkpoints.read(checkpoints.find(options.model))
    settings = settings.on(config.member)
    keras.utils.set_random_seed(seed)
    network = _network(config, source, family, settings)
    save_task(folder, config, tokenizer, network, settings)


def _data(options):
    """(family, training examples, dev examples, settings)."""
    from bert_tf.finetune.families import family

    task = family("classify")
    how = Namespace(
        glue=options.glue,
        format=None,
        columns=None,
        text_column=None,
        text2_column=None,
        label_column=None,
        label_separator="|",
        multi_label=False,
        regression=False,
        pooling="cls",
        length=options.length,
        metric=None,
        class_weights=None,
    )
    train, dev = list(task.read(options.train, how))[: options.examples], list(task.read(options.dev, how))
    return task, train, dev, task.settings(how, train)


def _network(config, source, family, settings):
    from bert_tf.finetune.network import build_network
    from bert_tf.models import named_variables

    network = build_network(config, family, settings)
    known = named_variables(source)
    for name, variable in named_variables(network.bert).items():
        if name in known:
            variable.assign(known[name])
    return network


class _Side:
    """A side in its process."""

    def __init__(self, name, folder, seed, options):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, name, folder, seed, options), daemon=True
        )
        self._process.start()
        if self._pipe.recv() != "ready":
            raise SystemExit(f"{name} did not start")

    def turn(self):
        """A few updates. Returns: whether there are more to do."""
        self._pipe.send("turn")
        return self._pipe.recv()

    def result(self):
        self._pipe.send("result")
        return self._pipe.recv()

    def stop(self):
        self._process.terminate()
        self._process.join()


def _serve(pipe, name, folder, seed, options):
    from bert_tf.finetune.feed import EpochFeed

    family, train, dev, settings = _data(options)
    update, score, tokenizer = SIDES[name](
        folder, settings, family, options, seed, total=options.epochs * -(-len(train) // options.batch_size)
    )
    rows = family.encode(train, tokenizer, settings, training=True)
    feed = EpochFeed(rows, options.batch_size, seed)
    batches = (_random_batches if "own batches" in name else _our_batches)(rows, feed, options, seed)
    left = options.epochs * feed.steps
    seen, seconds, cpu, examples = set(), 0.0, 0.0, 0
    pipe.send("ready")
    while True:
        if pipe.recv() == "result":
            scores = {} if options.no_score else _scores(score, dev, family, tokenizer, settings)
            pipe.send(
                {
                    "examples_per_second": examples / max(seconds, 1e-9),
                    "examples_per_cpu_second": examples / max(cpu, 1e-9),
                    "scores": scores,
                }
            )
            continue
        for _ in range(min(TURN, left)):
            batch = next(batches)
            length = batch["token_ids"].shape[1]
            began, begun_cpu = time.perf_counter(), time.process_time()
            update(batch)
            if length in seen or seen and name != "ours":  # others compile nothing: they only warm up once
                seconds += time.perf_counter() - began
                cpu += time.process_time() - begun_cpu
                examples += int((batch["weights"] > 0).sum())
            seen.add(length)
            left -= 1
        pipe.send(left > 0)


def _our_batches(rows, feed, options, seed):
    return (batch for batch, _ in feed.from_step(0))


def _random_batches(rows, feed, options, seed):
    for epoch in range(options.epochs):
        order = np.random.default_rng((seed, epoch)).permutation(len(rows))
        for first in range(0, len(order), options.batch_size):
            yield rows.batch(order[first : first + options.batch_size])


def _scores(forward, dev, family, tokenizer, settings):
    from bert_tf.finetune.model import run_rows

    rows = family.encode(dev, tokenizer, settings)
    outputs = run_rows(rows, 32, forward)
    return family.score(dev, family.decode(outputs, rows, dev, settings), settings)


def _ours(folder, settings, family, options, seed, total):
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from bert_tf import checkpoints
    from bert_tf.finetune.folder import load_head
    from bert_tf.train.optimizer import make_optimizer, warmup_steps
    from bert_tf.train.precision import apply_precision
    from bert_tf.train.step import Step

    keras.utils.set_random_seed(seed)
    config, tokenizer, source = checkpoints.read(folder)
    network = _network(config, source, family, settings.on(config.member))
    load_head(folder, network)
    apply_precision(network.bert, "bfloat16_products" if options.reduced else "float32")
    optimizer = make_optimizer(
        network.trainable_variables, options.learning_rate, total, warmup_steps(0.1, total)
    )
    step = Step(network, family.objective(settings), optimizer)
    signature = [{name: tf.TensorSpec((None, None), tf.int32) for name in INPUTS}]
    forward = tf.function(
        lambda batch: network(batch, training=False), input_signature=signature, autograph=False
    )
    return (
        lambda batch: float(step(batch)["loss"]),
        lambda batch: {
            name: np.asarray(value) for name, value in forward({name: batch[name] for name in INPUTS}).items()
        },
        tokenizer,
    )


def _theirs(folder, settings, family, options, seed, total):
    import torch
    import transformers

    from bert_tf.text import Tokenizer
    from bert_tf.train.optimizer import warmup_steps

    torch.set_num_threads(options.threads)
    torch.manual_seed(seed)
    model = transformers.BertForSequenceClassification.from_pretrained(folder)
    plain = [
        value for name, value in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name
    ]
    decayed = [
        value
        for name, value in model.named_parameters()
        if not (name.endswith("bias") or "LayerNorm" in name)
    ]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
        lr=options.learning_rate,
        eps=1e-6,
    )
    schedule = transformers.get_linear_schedule_with_warmup(optimizer, warmup_steps(0.1, total), total)

    def logits(batch):
        arrays = [torch.from_numpy(np.ascontiguousarray(batch[name])).long() for name in INPUTS]
        with torch.autocast("cpu", torch.bfloat16, enabled=options.reduced):
            return model(
                input_ids=arrays[0], token_type_ids=arrays[1], attention_mask=arrays[2]
            ).logits.float()

    def update(batch):
        model.train()
        real = torch.from_numpy(batch["weights"]) > 0
        wanted = torch.from_numpy(batch["targets"])
        found = logits(batch)[real]
        loss = (
            torch.nn.functional.mse_loss(found[:, 0], wanted[real])
            if settings.regression
            else torch.nn.functional.cross_entropy(found, wanted[real].long())
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        return float(loss.detach())

    def forward(batch):
        model.eval()
        with torch.no_grad():
            return {"logits": logits(batch).numpy()}

    return update, forward, Tokenizer.from_folder(folder)


SIDES = {"ours": _ours, "transformers": _theirs, "transformers, own batches": _theirs}


def _say(results, options):
    print(
        f"{options.model}, GLUE {options.glue}, {options.examples} examples x {options.epochs}, batches of "
        f"{options.batch_size}, {options.threads} threads, {'reduced' if options.reduced else 'float32'}"
    )
    for name in results[0]:
        shown = []
        for kind, words in (
            ("examples_per_second", "examples/s"),
            ("examples_per_cpu_second", "a second of CPU"),
        ):
            speeds = {side: statistics.median(one[side][kind] for one in results) for side in results[0]}
            ratio = (
                f" (ours {speeds['ours'] / speeds[name]:.2f} times)"
                if "ours" in speeds and name != "ours"
                else ""
            )
            shown.append(f"{speeds[name]:8.2f} {words}{ratio}")
        print(f"  {name:28} {'   '.join(shown)}")
        for metric in results[0][name]["scores"]:
            values = [one[name]["scores"][metric] for one in results]
            spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
            print(f"      {metric:24} {statistics.mean(values):.4f}{spread}")


if __name__ == "__main__":
    raise SystemExit(main())
