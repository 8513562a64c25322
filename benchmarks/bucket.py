"""Train, kill, resume from a bucket: against a local object store (moto's server), or against the bucket of --bucket.

    pip install '.[remote]' 'moto[server]'
    python benchmarks/bucket.py

Three trainings with the same settings: one in a local folder, one into the bucket that is killed (SIGKILL) after its
first checkpoint is there, and the same command again. Prints whether the logs and the weights are those of the first.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fsspec
import numpy as np
from safetensors.numpy import load_file

TEXT = "\n\n".join(f"The cat ran {number} miles.\nShe ran and the dog sat.\nIt slept." for number in range(400))


def main():
    """Start the store, and run the three trainings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bucket", help="an URL like s3://bucket/folder, instead of moto's server")
    parser.add_argument("--model", default="bert-small-uncased-embedded")
    args = parser.parse_args()
    server = None
    if args.bucket is None:
        args.bucket = "s3://training/test"
        port = "5055"
        os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_DEFAULT_REGION": "us-east-1"}
        os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(8)
        fsspec.filesystem("s3").mkdir("training")
    try:
        _trainings(args)
    finally:
        if server:
            server.terminate()


def _trainings(args):
    system, path = fsspec.core.url_to_fs(args.bucket)
    system.pipe_file(f"{path}/text.txt", TEXT.encode())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text.txt").write_text(TEXT)
        _train(args, str(folder / "text.txt"), str(folder / "run")).wait()
        killed = _train(args, f"{args.bucket}/text.txt", f"{args.bucket}/run")
        while not system.exists(f"{path}/run/checkpoints/step-4/state.json"):
            assert killed.poll() is None, "the training ended before it could be killed"
            time.sleep(0.1)
            system.invalidate_cache()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        system.invalidate_cache()
        print(
            "killed; the bucket has", sorted(file[len(path) + 1 :] for file in system.find(f"{path}/run/checkpoints"))
        )
        assert _train(args, f"{args.bucket}/text.txt", f"{args.bucket}/run").wait() == 0
        system.invalidate_cache()
        system.get(f"{path}/run", str(folder / "there"), recursive=True)
        logs = [[json.loads(line) for line in open(folder / run / "metrics.jsonl")] for run in ("run", "there")]
        steps = [[record["step"] for record in log] for log in logs]
        losses = np.array([[record["loss"] for record in log] for log in logs])
        weights = [load_file(folder / run / "model" / "model.safetensors") for run in ("run", "there")]
        difference = max(np.abs(weights[0][key] - weights[1][key]).max() for key in weights[0])
        loss_difference = np.abs(losses[0] - losses[1]).max()
        print(f"steps {steps}; largest difference of a loss {loss_difference:.1e}, of a weight {difference:.1e}")


def _train(args, text, output):
    options = ["--text", text, "--output", output, "--vocab", args.model, "--size", "tiny", "--length", "32"]
    options += ["--batch-size", "8", "--steps", "12", "--save-every", "4", "--log-every", "1"]
    command = [sys.executable, "-m", "bert_tf", "pretrain", *options]
    return subprocess.Popen(command, cwd=Path(__file__).resolve().parents[1], stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
