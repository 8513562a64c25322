"""LoRA beside full fine-tuning: the dev scores, the time, the memory and the size of what is stored.

    python benchmarks/lora.py --glue sst2 --train train.tsv --dev dev.tsv [--model M] [--rank 8] [--max-train 2000]
        [--epochs 3] [--batch-size 16] [--seeds 0 1] [--methods full lora] [--threads 1] [--json FILE]

Each training is one `python -m bert_tf finetune classify` in a process of its own, with the same examples, order and
number of updates; only `--lora` and the learning rate differ. Seconds are those of the processor over the whole
command, reading and evaluation included; memory is the largest resident set of the process. `--json` adds the runs to a
file and does not repeat those in it, so that the seeds can be run one after another.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LEARNING_RATES = {"full": 5e-5, "lora": 5e-4}
SETTINGS = ("glue", "model", "method", "rank", "max_train", "epochs", "batch_size", "seed", "threads")


def main(arguments=None):
    options = _options(arguments)
    runs = json.loads(options.json.read_text()) if options.json and options.json.exists() else []
    wanted = []
    for seed in options.seeds:
        for method in options.methods:
            settings = {name: getattr(options, name, None) for name in SETTINGS} | {"seed": seed, "method": method}
            settings["rank"] = options.rank if method == "lora" else 0
            done = [run for run in runs if all(run[name] == settings[name] for name in SETTINGS)]
            if not done:
                done = [settings | train(settings, options)]
                runs += done
                if options.json:
                    options.json.write_text(json.dumps(runs, indent=1))
            wanted += done
    print(table(wanted))
    return 0


def train(settings, options):
    """Runs one training. Returns: dict of its scores, seconds of the processor, MB of memory and MB of weights."""
    method = settings["method"]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "model")
        flags = {
            "model": options.model,
            "glue": options.glue,
            "train": options.train,
            "dev": options.dev,
            "max-train": options.max_train,
            "epochs": options.epochs,
            "batch-size": options.batch_size,
            "seed": settings["seed"],
            "threads": options.threads,
            "learning-rate": LEARNING_RATES[method],
            "output": output,
        }
        command = [sys.executable, "-m", "bert_tf", "finetune", "classify"]
        command += [str(part) for name, value in flags.items() for part in (f"--{name}", value)]
        command += ["--lora", str(options.rank)] if method == "lora" else []
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}.")
        return {
            "scores": json.loads((output / "report" / "metrics.json").read_text())["dev"],
            "processor_seconds": used.ru_utime + used.ru_stime,
            "peak_megabytes": used.ru_maxrss / 1024,
            "stored_megabytes": (output / "model.safetensors").stat().st_size / 1e6,
        }


def table(runs):
    """The means over the seeds, a row for each method, as Markdown."""
    lines = [
        "| method | seeds | accuracy | F1 | processor, s | peak memory, MB | stored, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in dict.fromkeys(run["method"] for run in runs):
        of_method = [run for run in runs if run["method"] == method]

        def mean(value, of_method=of_method):
            return statistics.mean(map(value, of_method))

        lines.append(
            f"| {method} | {len(of_method)} | {mean(lambda run: run['scores']['accuracy']):.3f}"
            f" | {mean(lambda run: run['scores'].get('f1', run['scores']['f1_macro'])):.3f}"
            f" | {mean(lambda run: run['processor_seconds']):.0f} | {mean(lambda run: run['peak_megabytes']):,.0f}"
            f" | {mean(lambda run: run['stored_megabytes']):.1f} |"
        )
    return "\n".join(lines)


def _options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--glue", required=True, choices=["sst2", "mrpc"])
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--model", default="bert-small-uncased-embedded")
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--max-train", type=int, default=2000, help="examples, chosen at random")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--methods", nargs="+", default=list(LEARNING_RATES), choices=list(LEARNING_RATES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="file of the runs")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
