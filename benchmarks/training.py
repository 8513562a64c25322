"""Speed of BERT's pre-training step: this project, KerasHub and Transformers, interleaved, each in a separate process.

    python benchmarks/training.py [--sizes small base] [--shapes 8x128 32x128] [--peers NAME ...] [--rounds 5]
        [--json FILE]

MLM + NSP, AdamW, dropout 0.1, random weights of full size, 20 masks per sequence. In every round each peer in turn
does a few updates of the same batch; the table has the medians over the rounds as tokens per second, CPU time
per step (which depends less on other work on the machine), the highest memory of the peer's process, and ours against
the best other of the same kind of precision. KerasHub is a
BertBackbone with its MaskedLMHead under `fit`; Transformers is BertForPreTraining with its own loss, which
computes the logits of all tokens. Other variants of ours (`VARIANTS` in training_peers.py) are measured on request.
Needs requirements-bench.txt and a C++ compiler for torch.compile.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import time
import traceback
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from training_peers import PEERS, VARIANTS  # noqa: E402

TURN_SECONDS = 2.0
KNOWN = PEERS | VARIANTS


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=["small", "base"])
    parser.add_argument("--shapes", nargs="+", default=["8x128", "32x128"])
    parser.add_argument("--peers", nargs="+", default=list(PEERS), metavar="NAME", choices=list(KNOWN))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    results = [measure(size, shape, options) for size in options.sizes for shape in options.shapes]
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return 0


def measure(size, shape, options):
    """Rounds of one size and shape. Returns: dict peer -> dict of median seconds a step, all, and memory."""
    workers = {}
    try:
        for name in options.peers:
            worker = Worker(name, size, shape)
            # One after the other, because the start of a peer would disturb the others.
            problem = worker.ask(2)
            if isinstance(problem, str):
                print(f"{name}: left out, {problem}", flush=True)
                worker.stop()
            else:
                workers[name] = worker
        seconds, processor = {name: [] for name in workers}, {name: [] for name in workers}
        for _ in range(options.rounds):
            for name, worker in workers.items():
                steps = worker.steps
                answer = worker.ask(steps)
                seconds[name].append(answer[0] / steps)
                processor[name].append(answer[2] / steps)
        results = {
            name: {
                "seconds": statistics.median(values),
                "all": values,
                "processor": statistics.median(processor[name]),
                "megabytes": workers[name].ask(0)[1],
            }
            for name, values in seconds.items()
        }
    finally:
        for worker in workers.values():
            worker.stop()
    _print_table(size, shape, results)
    return {"size": size, "shape": shape, "peers": results}


def _print_table(size, shape, results):
    batch, tokens = map(int, shape.split("x"))
    print(f"\n{size}, {shape}")
    for name, facts in results.items():
        print(
            f"  {name:30} {batch * tokens / facts['seconds']:9,.0f} tokens/s {facts['seconds'] * 1000:8,.0f} ms "
            f"{facts['processor'] * 1000:8,.0f} ms of processor time {facts['megabytes']:7,.0f} MB"
        )
    for reduced in (False, True):
        kind = {name: facts for name, facts in results.items() if KNOWN[name][0] == reduced}
        mine = [facts for name, facts in kind.items() if name.startswith("ours")]
        others = [facts for name, facts in kind.items() if not name.startswith("ours")]
        if mine and others:
            ratios = [
                min(one[what] for one in others) / min(one[what] for one in mine) for what in ("seconds", "processor")
            ]
            print(
                f"  {'reduced' if reduced else 'float32'}: ours is {ratios[0]:.2f} times the best other, by processor "
                f"time {ratios[1]:.2f} times",
                flush=True,
            )


class Worker:
    """A peer in a separate process."""

    def __init__(self, name, size, shape):
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, name, size, shape), daemon=True)
        self._process.start()
        theirs.close()  # so that reading fails if the peer's process ends
        self.steps = 1

    def ask(self, steps):
        """Runs this number of updates.

        Returns: (seconds, highest memory in MB, CPU seconds), or a str with the error.
        """
        self._pipe.send(steps)
        answer = self._pipe.recv()
        if isinstance(answer, tuple) and steps:
            self.steps = max(1, round(TURN_SECONDS / (answer[0] / steps)))
        return answer

    def stop(self):
        self._process.terminate()
        self._process.join()


def _serve(pipe, name, size, shape):
    run = None
    while True:
        steps = pipe.recv()
        try:
            if run is None:
                run = _ready(name, size, shape)
            began, busy = time.perf_counter(), time.process_time()
            if steps:
                run(steps)
            pipe.send((time.perf_counter() - began, _peak(), time.process_time() - busy))
        except Exception:
            pipe.send(traceback.format_exc().strip().split("\n")[-1][:200])


def _ready(name, size, shape):
    from bert_tf.config import BertConfig

    config = BertConfig.named(size)
    run = KNOWN[name][1](config, make_batch(config, *map(int, shape.split("x"))))
    run(2)
    return run


def make_batch(config, size, tokens, masks=20):
    """A batch of full sequences, the same for all."""
    rng = np.random.default_rng(0)
    positions = np.sort(np.stack([rng.permutation(tokens)[:masks] for _ in range(size)]))
    ids = rng.integers(1000, config.vocab_size, (size, tokens))
    segments = np.repeat([[0] * (tokens // 2) + [1] * (tokens - tokens // 2)], size, 0)
    batch = {
        "token_ids": ids,
        "segment_ids": segments,
        "padding_mask": np.ones_like(ids),
        "mask_positions": positions,
        "mask_labels": rng.integers(1000, config.vocab_size, (size, masks)),
        "nsp_labels": rng.integers(0, 2, size),
    }
    return {
        **{name: array.astype(np.int32) for name, array in batch.items()},
        "mask_weights": np.ones((size, masks), np.float32),
    }


def _peak():
    """Highest resident memory of this process so far, in MB (Linux)."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024


if __name__ == "__main__":
    raise SystemExit(main())
