"""Speed of one forward pass of BERT, compared with other libraries, interleaved, each peer in a separate process.

    python benchmarks/inference.py [--models base large] [--shapes 1x16 1x128 1x512 8x128 32x128] [--maps no
        yes] [--rounds 7] [--reduced] [--quick] [--cache FOLDER] [--json FILE]

Random weights of full size. In every round each peer in turn runs the batch a few times and reports its
median; the table has the medians over the rounds, in milliseconds, of each peer's best mode, and the ratio
ours / best other. `--reduced` compares reduced precision instead. Of ModernBERT (`--models modernbert-base --shapes
1x128 8x512 1x2048 --maps no`) the peers are the implementations over Transformers' class. Needs requirements-bench.txt.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SIZES = ("tiny", "small", "base", "large", "modernbert-base", "modernbert-large")
SHAPES = ("1x16", "1x128", "1x512", "8x128", "32x128")
TURN_SECONDS = 0.25  # seconds of one peer's turn: as many runs as fit, at least one
HOPELESS = 1.5  # a mode this many times slower than its peer's best is not run again


def main(arguments=None):
    options = _options(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.cache or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = []
        for size in options.models:
            results += measure_model(size, folder, options)
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": machine(), "results": results}, indent=1))
    return 0


def measure_model(size, folder, options):
    names = _peer_names(options, size)
    workers = {name: Worker(name, size, folder) for name in names}
    results = []
    try:
        for maps in options.maps:
            for shape in options.shapes:
                results.append(measure(size, shape, maps == "yes", workers, options.rounds))
                print(_row(results[-1], names, len(results) == 1), flush=True)
    finally:
        for worker in workers.values():
            worker.stop()
    return results


def measure(size, shape, maps, workers, rounds):
    for worker in workers.values():
        worker.ask("prepare", shape, maps)
    times = {name: {} for name in workers}
    peaks = []
    for number in range(rounds):
        # In alternating order, so that no peer always runs first, after the measurement of the peak.
        for name, worker in list(workers.items())[:: -1 if number % 2 else 1]:
            for mode, seconds in worker.ask("turn").items():
                times[name].setdefault(mode, []).append(seconds)
        peaks.append(next(iter(workers.values())).ask("peak"))
    figures = {}
    for name, modes in times.items():
        medians = {mode: statistics.median(values) * 1000 for mode, values in modes.items()}
        best = min(medians, key=medians.get)
        figures[name] = {
            "ms": medians[best],
            "mode": best,
            "modes": medians,
            "runs": [value * 1000 for value in modes[best]],
        }
    return {
        "model": size,
        "shape": shape,
        "maps": maps,
        "peers": figures,
        "matmul_gflops": statistics.median(peaks),
    }


class Worker:
    """A process that holds one peer's model."""

    def __init__(self, name, size, folder):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, name, size, folder), daemon=True)
        self.process.start()
        theirs.close()  # so that reading fails if the peer's process ends
        self.name = name

    def ask(self, *question):
        self.pipe.send(question)
        kind, answer = self.pipe.recv()
        if kind == "error":
            raise RuntimeError(f"{self.name}: {answer}")
        return answer

    def stop(self):
        self.pipe.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.terminate()


def serve(pipe, name, size, folder):
    """A worker's loop: answers ("prepare", shape, maps), ("turn",) and ("peak",) until the pipe closes."""
    from inference_peers import PEERS, REDUCED

    make, config, calls = {**PEERS, **REDUCED}[name], _config(size), {}
    while True:
        try:
            question = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            if question[0] == "prepare":
                rows, tokens = map(int, question[1].split("x"))
                calls = _hopeful(make(config, folder, question[2], _batch(rows, tokens, config.vocab_size)))
                answer = list(calls)
            elif question[0] == "turn":
                answer = {mode: _turn(call) for mode, call in calls.items()}
            else:
                answer = _matmul_gflops()
            pipe.send(("answer", answer))
        except Exception as error:  # sent to the parent, which stops with it
            pipe.send(("error", f"{type(error).__name__}: {error}"))


def _config(size):
    """The settings of a size of BERT, or of another architecture by its name and size: "modernbert-base"."""
    from bert_tf.config import BertConfig

    model_type, _, size = size.rpartition("-")
    return BertConfig.named(size, model_type or "bert")


def _hopeful(calls):
    """Runs every mode until it is warm. Returns: the modes to time."""
    times = {}
    for mode, call in calls.items():
        for _ in range(2):
            call()
        began = time.perf_counter()
        call()
        times[mode] = time.perf_counter() - began
    return {mode: call for mode, call in calls.items() if times[mode] <= HOPELESS * min(times.values())}


def _turn(call):
    """Median seconds of one run; for short runs the first one is not counted."""
    times, end = [], time.perf_counter() + TURN_SECONDS
    while not times or time.perf_counter() < end:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:] or times)


def _batch(rows, tokens, vocab_size):
    random = np.random.default_rng(0)
    return (
        random.integers(1000, vocab_size, (rows, tokens)),
        np.zeros((rows, tokens), np.int64),
        np.ones((rows, tokens), np.int64),
    )


def _matmul_gflops(size=2048):
    import tensorflow as tf

    matrix = tf.ones((size, size))
    tf.matmul(matrix, matrix)
    began = time.perf_counter()
    tf.matmul(matrix, matrix).numpy()
    return 2 * size**3 / (time.perf_counter() - began) / 1e9


def machine():
    from importlib.metadata import version

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    packages = ("tensorflow", "keras", "openvino", "onnxruntime", "torch", "transformers", "keras-hub")
    return {
        "processor": name,
        "cores": multiprocessing.cpu_count(),
        "versions": {package: version(package) for package in packages},
    }


def _row(result, names, first):
    head = (
        (
            "| model | batch x tokens | maps | "
            + " | ".join(names)
            + " | ours / best other | matmul GFLOP/s |\n|"
            + "---|" * (5 + len(names))
            + "\n"
        )
        if first
        else ""
    )
    others = [one["ms"] for name, one in result["peers"].items() if not name.startswith("ours")]
    mine = result["peers"].get("ours") or result["peers"].get("ours, int8")
    ratio = f"{mine['ms'] / min(others):.2f}" if mine and others else ""
    cells = [f"{result['peers'][name]['ms']:.1f} ({result['peers'][name]['mode']})" for name in names]
    return head + (
        f"| {result['model']} | {result['shape']} | {'yes' if result['maps'] else 'no'} | "
        + " | ".join(cells)
        + f" | {ratio} | {result['matmul_gflops']:.0f} |"
    )


def _peer_names(options, size):
    from inference_peers import ANY_ARCHITECTURE, PEERS, REDUCED

    known = REDUCED if options.reduced else PEERS
    if "-" in size:
        known = {name: peer for name, peer in known.items() if name in ANY_ARCHITECTURE}
    chosen = options.peers or list(known)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        sys.exit(f"Unknown peers: {', '.join(unknown)}; known are: {', '.join(known)}.")
    return chosen


def _options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["base", "large"], choices=SIZES)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="batch x tokens, such as 8x128")
    parser.add_argument("--maps", nargs="+", default=["no", "yes"], choices=["no", "yes"])
    parser.add_argument("--peers", nargs="+", help="only these peers")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--reduced", action="store_true", help="reduced precision instead of float32")
    parser.add_argument("--quick", action="store_true", help="Base, three rounds, no batch of 32")
    parser.add_argument("--cache", help="folder for exported graphs")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args(arguments)
    if options.quick:
        options.models, options.rounds = ["base"], 3
        options.shapes = [shape for shape in options.shapes if shape != "32x128"]
    return options


if __name__ == "__main__":
    sys.exit(main())
