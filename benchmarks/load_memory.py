"""The memory and the time that loading BERT-base takes.

    python benchmarks/load_memory.py [--size base] [--dtype float32] [--json]

Writes random weights of that size to a temporary folder, then loads them in a separate process. Measures
the highest resident memory (VmHWM) minus that of the imports alone, compared with the size of model.safetensors.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bert_tf.checkpoints.tensor_names import tensor_shapes  # noqa: E402
from bert_tf.config import BertConfig  # noqa: E402


def write_random(folder, size, dtype):
    """A Hugging Face folder with random weights; returns the bytes of its file."""
    config, rng = BertConfig.named(size), np.random.default_rng(0)
    tensors = {
        name: rng.standard_normal(shape, np.float32).astype(dtype) for name, shape in tensor_shapes(config).items()
    }
    path = folder / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config.to_hf_dict()))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = special + [f"word{index}" for index in range(config.vocab_size - len(special))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return path.stat().st_size


def peak():
    """Highest resident memory of this process so far, in bytes (Linux).

    Not `ru_maxrss`, which starts from the value of the parent process.
    """
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def load_and_report(folder):
    """Runs in the separate process: imports, then loads once."""
    from bert_tf.checkpoints import read
    from bert_tf.config import BertConfig
    from bert_tf.models import build_pretraining_model

    # The first Keras model of a process initializes the framework, which is not a cost of loading.
    build_pretraining_model(BertConfig.tiny(vocab_size=16, max_position_embeddings=8))
    imports = peak()
    start = time.perf_counter()
    read(folder)
    seconds = time.perf_counter() - start
    print(json.dumps({"imports_bytes": imports, "peak_bytes": peak(), "seconds": seconds}))


def measure(size, dtype):
    """Loads a random model of that size in a fresh process; returns a dict of figures."""
    with tempfile.TemporaryDirectory() as name:
        file_bytes = write_random(Path(name), size, dtype)
        command = [sys.executable, __file__, "--load", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout.splitlines()[-1])
    above = report["peak_bytes"] - report["imports_bytes"]
    return {
        "size": size,
        "dtype": dtype,
        "file_mb": file_bytes / 1e6,
        "imports_mb": report["imports_bytes"] / 1e6,
        "peak_above_imports_mb": above / 1e6,
        "times_the_file": above / file_bytes,
        "seconds": report["seconds"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="base")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--load", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.load:
        return load_and_report(args.load)
    figures = measure(args.size, args.dtype)
    if args.json:
        return print(json.dumps(figures))
    print(
        f"{figures['size']} {figures['dtype']}: file {figures['file_mb']:.0f} MB, peak above imports "
        f"{figures['peak_above_imports_mb']:.0f} MB = {figures['times_the_file']:.2f} times the file, "
        f"{figures['seconds']:.2f} s (imports {figures['imports_mb']:.0f} MB)"
    )


if __name__ == "__main__":
    main()
