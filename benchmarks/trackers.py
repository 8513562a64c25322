"""A short fine-tuning that logs to a real MLflow file store or server, and to wandb in its offline mode.

    pip install mlflow-skinny wandb
    python benchmarks/trackers.py [--folder /tmp/trackers]

Prints what the trackers hold afterwards. MLFLOW_TRACKING_URI names another store or a server.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bert_tf.cli import main as bert_tf  # noqa: E402

TRAIN = "text,label\n" + "A fine film.,good\nA dull film.,bad\n" * 16


def main():
    """Fine-tune with each tracker, and read MLflow's store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default="/tmp/trackers", type=Path)
    parser.add_argument("--model", default="bert-small-uncased-embedded")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MLFLOW_TRACKING_URI", f"file://{args.folder.absolute()}/mlruns")
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # newer versions prefer a database or a server
    os.environ.setdefault("WANDB_MODE", "offline")
    (args.folder / "train.csv").write_text(TRAIN)
    train = str(args.folder / "train.csv")
    for tracker in ("mlflow", "wandb"):
        options = ["--model", args.model, "--train", train, "--dev", train, "--output", str(args.folder / tracker)]
        options += ["--epochs", "2", "--batch-size", "8", "--length", "16", "--lengths", "1", "--log-every", "1"]
        assert bert_tf(["finetune", "classify", *options, "--log-to", tracker]) == 0
    from mlflow import MlflowClient

    client = MlflowClient()
    for run in client.search_runs([client.get_experiment_by_name("bert_tf").experiment_id]):
        steps = [metric.step for metric in client.get_metric_history(run.info.run_id, "loss")]
        print(f"MLflow, run {run.info.run_name}: {run.info.status}, {run.data.metrics}, losses of steps {steps}")
    print("wandb:", *sorted(str(path) for path in (args.folder / "wandb").rglob("*.wandb")))


if __name__ == "__main__":
    main()
