"""Pre-training objectives side by side: the same tiny model, text and number of tokens seen; then SST-2.

    python benchmarks/objectives.py --text text.txt --vocab FOLDER --train sst2/train.tsv --dev sst2/dev.tsv
        --output DIR [--held-out wikitext2/valid.txt] [--teacher MODEL] [--size 3x128x4] [--steps 1000]
        [--seeds 3] [--ways mlm+nsp mlm ...] [--threads 1]

Every model begins at random weights and sees `steps` batches of 32 x 64 tokens; each is then fine-tuned on the
same examples of SST-2 with a few seeds. "none" is fine-tuned without any pre-training: what a way is worth is
how far it is above that. ELECTRA's way computes more for a token (its generator), distillation too (its
teacher, which has seen far more text): the table has the time of a pre-training beside the scores. All of it runs by
`python -m bert_tf pretrain` and `finetune`, so the same command goes on where it was stopped.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEACHER = ROOT / "assets" / "training" / "plain-english" / "snapshots" / "step-13000"
BATCH, LENGTH = 32, 64

#: way -> what `pretrain` is told; None is no pre-training.
WAYS = {
    "none": None,
    "mlm+nsp (BERT)": ["--objective", "mlm+nsp"],
    "mlm, full sentences (RoBERTa)": ["--objective", "mlm"],
    "mlm of n-grams + sop (ALBERT)": ["--objective", "sop", "--ngram", "3"],
    "replaced tokens (ELECTRA)": ["--objective", "mlm", "--generator", "0.5"],
    "distilled, states (DistilBERT)": ["--objective", "mlm", "--teacher", "{teacher}", "--distil", "states"],
}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("text", "vocab", "train", "dev", "output"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    parser.add_argument("--held-out", type=Path, help="text to measure masked words and pairs on")
    parser.add_argument("--teacher", type=Path, default=TEACHER)
    parser.add_argument("--size", default="3x128x4")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--examples", type=int, default=8000, help="of SST-2's training file")
    parser.add_argument("--seeds", type=int, default=3, help="2 or more")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    for name in ("text", "vocab", "train", "dev", "output", "held_out"):
        if getattr(options, name):
            setattr(options, name, getattr(options, name).resolve())
    options.output.mkdir(parents=True, exist_ok=True)
    found = {way: measure(way, options) for way in options.ways}
    (options.output / "objectives.json").write_text(json.dumps(found, indent=1))
    _say(found, options)
    return 0


def measure(way, options):
    """Pre-trains one way, measures it, fine-tunes it.

    Returns: dict with "seconds", "held_out" (None where it predicts no words) and "accuracy" (mean, std,
        values over the seeds, in SST-2's dev set).
    """
    folder = options.output / "".join(letter if letter.isalnum() else "-" for letter in way)
    seconds, model = _pretrained(way, folder, options)
    tuned = folder / "sst2"
    _bert_tf("finetune", "classify", "--model", model, "--glue", "sst2", "--train", options.train, "--dev", options.dev,
             "--max-train", options.examples, "--epochs", 2, "--batch-size", 32, "--learning-rate", "3e-4",
             "--length", LENGTH, "--seeds", options.seeds, "--output", tuned, *_common(options), log=folder / "sst2.log")
    scores = json.loads((tuned / "report" / "metrics.json").read_text())
    held = _held_out(model, folder, options) if options.held_out and way != "none" else None
    return {"seconds": seconds, "held_out": held, "accuracy": scores["seeds"]["accuracy"]}


def _pretrained(way, folder, options):
    """(seconds, model folder); "none" is what another way's pre-training begins with."""
    folder.mkdir(exist_ok=True)
    stopped = ["--steps", options.steps]
    told = WAYS[way]
    if told is None:
        told, stopped = ["--objective", "mlm+nsp", "--snapshots"], ["--steps", 1, "--stop-after", 1]
    told = [part.format(teacher=options.teacher) for part in told]
    timing = folder / "seconds"
    began = time.perf_counter()
    if not timing.exists():
        _bert_tf("pretrain", "--text", options.text, "--size", options.size, "--positions", 128, "--vocab", options.vocab,
                 "--corpus", options.output / "ids", "--output", folder / "run", "--batch-size", BATCH, "--length", LENGTH,
                 "--learning-rate", "1.5e-3", "--warmup", 0.05, "--dropout", 0, *stopped, *told, *_common(options),
                 log=folder / "pretrain.log")
        timing.write_text(f"{time.perf_counter() - began:.0f}")
    model = folder / "run" / ("snapshots/step-0" if way == "none" else "model")
    return float(timing.read_text()), model


def _held_out(model, folder, options):
    try:
        said = _bert_tf("evaluate", "mlm", "--model", model, "--text", options.held_out, "--json", log=folder / "held.log")
    except subprocess.CalledProcessError:
        return None
    return json.loads(said)


def _common(options):
    return ["--precision", "bfloat16_products", "--threads", options.threads]


def _bert_tf(*arguments, log):
    """Runs a command of the project. Returns: its output; what it says goes into the log."""
    with open(log, "ab") as file:
        return subprocess.run([sys.executable, "-m", "bert_tf", *map(str, arguments)], cwd=ROOT, check=True,
                              stdout=subprocess.PIPE, stderr=file).stdout.decode()


def _say(found, options):
    tokens = options.steps * BATCH * LENGTH
    print(f"{options.size}, {tokens:,} tokens seen, SST-2 with {options.examples:,} examples, {options.seeds} seeds\n")
    print("| pre-trained by | seconds | masked words, top-1 | pairs | SST-2 dev accuracy |\n|---|---|---|---|---|")
    for way, facts in found.items():
        held = facts["held_out"] or {}
        words, pairs = (f"{held[name]:.3f}" if held.get(name) is not None else "–" for name in ("top1", "nsp_accuracy"))
        accuracy = facts["accuracy"]
        print(f"| {way} | {facts['seconds']:.0f} | {words} | {pairs} | {accuracy['mean']:.3f} ± {accuracy['std']:.3f} |")


if __name__ == "__main__":
    raise SystemExit(main())
