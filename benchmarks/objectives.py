"""Pre-training objectives side by side: tiny models of one size, the same text, equal compute or tokens; then SST-2.

    python benchmarks/objectives.py --text text.txt --vocab FOLDER --train sst2/train.tsv --dev sst2/dev.tsv
        --output DIR [--held-out wikitext2/valid.txt] [--teacher MODEL] [--size 3x128x4] [--steps 1000]
        [--equal compute] [--seeds 3] [--ways mlm+nsp mlm ...] [--threads 1]

Every model starts with random weights and trains on batches of 32 x 64 tokens; each is then fine-tuned on the same
examples of SST-2 with a few seeds. "none" is fine-tuned without pre-training, as the baseline. Some objectives compute
more for each token: ELECTRA has a generator, distillation a teacher (which was also trained on far more text). There
is one learning rate for AdamW, one for LAMB and one for ELECTRA; they are not tuned for each objective. With `--equal
tokens` all have `--steps` updates; with `--equal compute` BERT's objective has them, and the others the number of
updates that takes the same time, from the time of an update measured over the first 60. The table has the time and the
updates of each pre-training beside the scores. All runs use `python -m bert_tf pretrain` and `finetune`, so the same
command resumes a stopped run.
"""

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEACHER = ROOT / "assets" / "training" / "plain-english" / "snapshots" / "step-13000"
BATCH, LENGTH = 32, 64
#: Number of updates for measuring the time of one; the first updates, which compile, are left out.
TRIAL, SETTLED, BETWEEN = 60, 20, 10


@dataclass(frozen=True)
class Setup:
    """How a model is pre-trained: the options of `pretrain`, and its peak learning rate."""

    options: tuple
    learning_rate: float = 1.5e-3


#: name -> `Setup`; None is no pre-training.
SETUPS = {
    "none": None,
    "mlm+nsp (BERT)": Setup(("--objective", "mlm+nsp")),
    "mlm, full sentences (RoBERTa)": Setup(("--objective", "mlm")),
    "mlm of n-grams + sop (ALBERT)": Setup(
        ("--objective", "sop", "--ngram", "3", "--model-type", "albert", "--optimizer", "lamb"), 1e-2
    ),
    # The rate of Clark et al. 2020, table 6; with the rate of the others the discriminator always predicts "original".
    "replaced tokens (ELECTRA)": Setup(("--objective", "mlm", "--generator", "0.5"), 5e-4),
    "distilled, states (DistilBERT)": Setup(("--objective", "mlm", "--teacher", "{teacher}", "--distil", "states")),
    "distilled, relations (MiniLM)": Setup(("--objective", "mlm", "--teacher", "{teacher}", "--distil", "relations")),
}
FIRST = "mlm+nsp (BERT)"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("text", "vocab", "train", "dev", "output"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    parser.add_argument(
        "--held-out", type=Path, help="text for the evaluation of masked words, pairs and replaced tokens"
    )
    parser.add_argument("--teacher", type=Path, default=TEACHER)
    parser.add_argument("--size", default="3x128x4")
    parser.add_argument("--steps", type=int, default=1000, help="updates of each objective, or of BERT's")
    parser.add_argument("--equal", choices=("tokens", "compute"), default="tokens")
    parser.add_argument("--examples", type=int, default=8000, help="number of examples of SST-2's training file")
    parser.add_argument("--seeds", type=int, default=3, help="2 or more")
    parser.add_argument("--ways", nargs="+", default=list(SETUPS), choices=list(SETUPS))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    for name in ("text", "vocab", "train", "dev", "output", "held_out"):
        if getattr(options, name):
            setattr(options, name, getattr(options, name).resolve())
    options.output.mkdir(parents=True, exist_ok=True)
    steps = plan(options)
    figures = {way: measure(way, steps[way], options) for way in options.ways}
    (options.output / "objectives.json").write_text(json.dumps(figures, indent=1))
    _print_table(figures, options)
    return 0


def plan(options):
    """The updates of each objective: dict objective -> int. An existing plan in the output folder is not changed."""
    trained = [way for way in options.ways if SETUPS[way]]
    steps = dict.fromkeys(options.ways, options.steps)
    if options.equal == "tokens" or not trained:
        return steps
    path = options.output / "costs.json"
    costs = json.loads(path.read_text()) if path.exists() else {}
    for way in dict.fromkeys([FIRST, *trained]):
        if way not in costs:
            costs[way] = cost(way, options)
            path.write_text(json.dumps(costs, indent=1))
    return {**steps, **{way: max(1, round(options.steps * costs[FIRST] / costs[way])) for way in trained}}


def cost(way, options):
    """Seconds of an update: the median over the first updates of a run, without those that compile."""
    folder = _folder(way, options)
    _pretrain(way, TRIAL, folder / "trial", options, folder / "trial.log", "--log-every", BETWEEN)
    records = _records(folder / "trial")
    return statistics.median(record["seconds_per_step"] for record in records if record["step"] > SETTLED)


def measure(way, steps, options):
    """Pre-trains with one objective, evaluates the model and fine-tunes it.

    Returns: dict with "steps" and "seconds" of the pre-training, "held_out" (None where nothing was asked) and
        "accuracy" (mean, std, values over the seeds, in SST-2's dev set).
    """
    folder = _folder(way, options)
    if SETUPS[way]:
        _pretrain(way, steps, folder / "run", options, folder / "pretrain.log")
        model = folder / "run" / "model"
        seconds = _seconds(folder / "run")
    else:
        # The start of the pre-training with another objective.
        _pretrain(FIRST, 1, folder / "run", options, folder / "pretrain.log", "--snapshots")
        model, steps, seconds = folder / "run" / "snapshots" / "step-0", 0, 0.0
    tuned = folder / "sst2"
    _bert_tf(
        "finetune",
        "classify",
        "--model",
        model,
        "--glue",
        "sst2",
        "--train",
        options.train,
        "--dev",
        options.dev,
        "--max-train",
        options.examples,
        "--epochs",
        2,
        "--batch-size",
        32,
        "--learning-rate",
        "3e-4",
        "--length",
        LENGTH,
        "--seeds",
        options.seeds,
        "--output",
        tuned,
        *_common(options),
        log=folder / "sst2.log",
    )
    scores = json.loads((tuned / "report" / "metrics.json").read_text())
    held = _held_out(model, folder, options) if options.held_out and SETUPS[way] else None
    return {"steps": steps, "seconds": seconds, "held_out": held, "accuracy": scores["seeds"]["accuracy"]}


def _folder(way, options):
    folder = options.output / "".join(letter if letter.isalnum() else "-" for letter in way)
    folder.mkdir(exist_ok=True)
    return folder


def _pretrain(way, steps, output, options, log, *more):
    """Starts or resumes the run of an objective; does nothing if it is finished."""
    records = _records(output)
    if records and records[-1]["step"] >= steps and (output / "model").is_dir():
        return
    objective_options = [part.format(teacher=options.teacher) for part in SETUPS[way].options]
    _bert_tf(
        "pretrain",
        "--text",
        options.text,
        "--size",
        options.size,
        "--positions",
        128,
        "--vocab",
        options.vocab,
        "--corpus",
        options.output / "ids",
        "--output",
        output,
        "--batch-size",
        BATCH,
        "--length",
        LENGTH,
        "--learning-rate",
        SETUPS[way].learning_rate,
        "--warmup",
        0.05,
        "--dropout",
        0,
        "--steps",
        steps,
        *objective_options,
        *more,
        *_common(options),
        log=log,
    )


def _records(run):
    sys.path.insert(0, str(ROOT))
    from bert_tf.training.run_folder import METRICS, read_records

    return read_records(run / METRICS)


def _seconds(run):
    """The seconds of all updates by the log, also if the run was stopped and resumed."""
    seconds, before = 0.0, 0
    for record in _records(run):
        seconds += record["seconds_per_step"] * (record["step"] - before)
        before = record["step"]
    return seconds


def _held_out(model, folder, options):
    return json.loads(
        _bert_tf(
            "evaluate",
            "mlm",
            "--model",
            model,
            "--text",
            options.held_out,
            "--json",
            "--quiet",
            log=folder / "held.log",
        )
    )


def _common(options):
    return ["--precision", "bfloat16_products", "--threads", options.threads]


def _bert_tf(*arguments, log):
    """Runs a command of the project. Returns: its output; standard error goes to the log."""
    with open(log, "ab") as file:
        return subprocess.run(
            [sys.executable, "-m", "bert_tf", *map(str, arguments)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            stderr=file,
        ).stdout.decode()


def _print_table(results, options):
    print(
        f"{options.size}, batches of {BATCH} x {LENGTH} tokens, equal {options.equal}, "
        f"SST-2 with {options.examples:,} examples, {options.seeds} seeds\n"
    )
    print(
        "| pre-trained by | updates | seconds | masked words, top-1 | next sentence | order | replaced (AUC) | "
        "SST-2 dev accuracy |\n|---|---|---|---|---|---|---|---|"
    )
    for way, facts in results.items():
        held = facts["held_out"] or {}
        figures = " | ".join(
            f"{held[name]:.3f}" if held.get(name) is not None else "–"
            for name in ("top1", "nsp_accuracy", "sop_accuracy", "replaced_auc")
        )
        accuracy = facts["accuracy"]
        print(
            f"| {way} | {facts['steps']:,} | {facts['seconds']:.0f} | {figures} | {accuracy['mean']:.3f} ± "
            f"{accuracy['std']:.3f} |"
        )


if __name__ == "__main__":
    raise SystemExit(main())
