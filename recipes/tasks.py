"""Makes the four shipped fine-tuned models, from their data sets to the shipped folders.

    python recipes/tasks.py sentiment --train sst2/train.tsv --dev sst2/dev.tsv --work build
    python recipes/tasks.py words     --train en_ewt-ud-train.conllu --dev en_ewt-ud-dev.conllu --work build
    python recipes/tasks.py entities  --train wnut17train.conll --dev emerging.dev.conll --work build
    python recipes/tasks.py questions --train squad-train.json --work build

Each model is based on an embedded model: only its head and what was trained are stored, so all four together take under
40 MB. For sentiment low-rank updates of all layers of Base are trained (LoRA), on all examples in 40 minutes on two
cores; for words too, in 25 minutes, and for entities, in 10.
On a GPU they are trained with Base by recipes/gpu_base.py, after `--prepare` and before `--ship`.
Questions need more trained layers, so there all layers of Small except the lowest are trained. The training is
`python -m bert_tf finetune`, which resumes a stopped run; the folder is then copied without its checkpoints, and its
card is completed.
"""

import argparse
import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
#: What `--prepare` writes for recipes/gpu_base.py.
BATCHES, SETTINGS = "batches.npz", "fine-tuning.json"
COMMON = {"precision": "bfloat16_products", "strategy": "one", "log-every": 20, "save-every": 200}


@dataclasses.dataclass(frozen=True)
class ModelRecipe:
    """A model to make: its folder's name, task and start, options of `finetune`, licence, its data and their terms."""

    name: str
    task: str
    start: str
    options: dict
    licence: str
    source: str


RECIPES = {
    "sentiment": ModelRecipe(
        "sentiment-base-cased",
        "classify",
        "bert-base-cased-embedded",
        {
            "glue": "sst2",
            "lora": 8,
            "epochs": 1,
            "learning-rate": 5e-4,
            "batch-size": 32,
            "pooling": "mean",
            "lengths": 6,
        },
        "cc-by-sa-3.0",
        "Stanford Sentiment Treebank in GLUE's form (SST-2; Socher et al. 2013): film reviews, whole and in parts. "
        "The data set is given for research; the weights are shared under the base model's terms.",
    ),
    "words": ModelRecipe(
        "parts-of-speech-base-cased",
        "tag",
        "bert-base-cased-embedded",
        {"lora": 8, "epochs": 2, "learning-rate": 5e-4, "batch-size": 32, "length": 96, "lengths": 6},
        "cc-by-sa-4.0",
        "Universal Dependencies English Web Treebank (UD_English-EWT, CC BY-SA 4.0): universal part-of-speech tags.",
    ),
    "entities": ModelRecipe(
        "entities-base-cased",
        "tag",
        "bert-base-cased-embedded",
        {
            "lora": 16,
            "epochs": 3,
            "learning-rate": 5e-4,
            "batch-size": 16,
            "dropout": 0.2,
            "length": 96,
            "lengths": 6,
        },
        "cc-by-sa-4.0",
        "WNUT-17, emerging entities (Derczynski et al. 2017, CC BY 4.0): names in posts, comments and questions of the "
        "web. The base model's source was fine-tuned on the names of CoNLL-2003, which may help it here.",
    ),
    "questions": ModelRecipe(
        "questions-small-uncased",
        "answer",
        "bert-small-uncased-embedded",
        {"freeze-layers": 1, "epochs": 2, "learning-rate": 3e-4, "batch-size": 16, "length": 256, "lengths": 3},
        "cc-by-sa-4.0",
        "SQuAD 1.1 (Rajpurkar et al. 2016, CC BY-SA 4.0), a part of its training set; a tenth of the passages was held "
        "back for measuring.",
    ),
}


def command(kind, args, **others):
    """The arguments of `finetune`. Args: others: settings in the place of the usual ones."""
    held = ["--dev", args.dev] if args.dev else ["--dev-share", "0.1"]
    settings = {**COMMON, **kind.options, **others, **dict(args.set)}
    stored = [] if "lora" in settings else ["--delta"]
    return [
        *(kind.task, "--model", kind.start, "--train", args.train, *held),
        *("--output", str(args.work / kind.name), *stored, "--store", "int8"),
        *(str(part) for key, value in settings.items() for part in (f"--{key}", value)),
    ]


def train(kind, args):
    """Runs the training. Returns: its folder."""
    subprocess.run([sys.executable, "-m", "bert_tf", "finetune", *command(kind, args)], cwd=ROOT, check=True)
    return args.work / kind.name


def gpu_training(kind, args):
    """What recipes/gpu_base.py trains. Returns: (training examples, dev examples, `TaskSettings`, `FitSettings`)."""
    sys.path.insert(0, str(ROOT))
    from bert_tf.cli import finetune

    options = finetune.parsed(command(kind, args, precision="mixed_bfloat16"))
    return *finetune.checked_examples(options), finetune.fit_settings(options)


def prepare(kind, args):
    """Writes all batches of a training, all of one length, and its settings."""
    train, _, settings, how = gpu_training(kind, args)
    from bert_tf.checkpoints import find
    from bert_tf.checkpoints.reading import open_folder
    from bert_tf.finetuning.epoch_feed import EpochFeed
    from bert_tf.finetuning.tasks.registry import task_type

    config, tokenizer, _ = open_folder(find(kind.start))
    settings = settings.on(config.architecture).replace(extra={**settings.extra, "lora_rank": how.lora})
    rows = task_type(kind.task).encode(train, tokenizer, settings, training=True)
    feed = EpochFeed(rows, how.batch_size, how.seed, lengths=1)
    batches = [batch for (batch, _), _ in zip(feed.from_step(0), range(how.epochs * feed.steps))]
    folder = args.work / kind.name
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / BATCHES, **{name: np.stack([one[name] for one in batches]) for name in batches[0]})
    settings_and_training = {"settings": settings.to_dict(), "training": dataclasses.asdict(how)}
    (folder / SETTINGS).write_text(json.dumps(settings_and_training), encoding="utf-8")


def report(kind, args):
    """Measures what was trained on a GPU and writes its report and card. Returns: its folder."""
    train, dev, _, how = gpu_training(kind, args)
    from bert_tf.finetuning.report import write_report

    write_report(args.work / kind.name, dev, len(train), how, kind.start, [])
    return args.work / kind.name


def ship(asked, trained, target, dev=None):
    """Copies what a model folder needs and completes the card. Args: dev: the examples that the copy is measured on."""
    kind = RECIPES[asked]
    target.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "task.json", "model.safetensors", "tokenizer_config.json", "checksums.json"):
        if (trained / name).exists():
            shutil.copy2(trained / name, target / name)
    front, _, body = (trained / "README.md").read_text(encoding="utf-8").removeprefix("---\n").partition("\n---\n")
    made = f"Made by `recipes/tasks.py {asked}`; it lies over {kind.start}, which must be there."
    body = body.replace("## Measured", f"## Data\n\n{kind.source}\n\n{made}\n\n## Measured", 1)
    if dev:
        body = with_figures(body, measure(kind, target, dev))
    card = f"---\nlicense: {kind.licence}\nlanguage: en\n{front}\n---\n{body}"
    (target / "README.md").write_text(card, encoding="utf-8")


def measure(kind, folder, dev):
    """The figures of a stored model, which can differ from those of the training: it is rounded to eight bits."""
    glue = ("--glue", kind.options["glue"]) if "glue" in kind.options else ()
    command = ["-m", "bert_tf", "evaluate", kind.task, "--model", folder, "--data", dev, "--json", "--quiet", *glue]
    done = subprocess.run([sys.executable, *map(str, command)], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def with_figures(body, figures):
    """A card with other figures in its table. Args: figures: dict name -> number; rows of other names stay."""

    def row(match):
        return f"| {match[1]} | {figures[match[1]]:.4f} |" if match[1] in figures else match[0]

    return re.sub(r"^\| (\w+) \| [\d.]+ \|$", row, body, flags=re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=RECIPES)
    parser.add_argument("--train", required=True)
    parser.add_argument("--dev")
    parser.add_argument("--work", type=Path, default=Path("build"), help="folder of the training")
    parser.add_argument("--target", type=Path, help="default: assets/models/NAME")
    parser.add_argument(
        "--set", nargs=2, action="append", default=[], metavar=("OPTION", "VALUE"), help="another setting of `finetune`"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--prepare", action="store_true", help="only write the batches for recipes/gpu_base.py")
    how.add_argument("--ship", action="store_true", help="do not train: what recipes/gpu_base.py trained")
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.train, args.dev = (path and str(Path(path).resolve()) for path in (args.train, args.dev))
    kind = RECIPES[args.kind]
    target = args.target.resolve() if args.target else ROOT / "assets" / "models" / kind.name
    if args.prepare:
        prepare(kind, args)
        return
    trained = report(kind, args) if args.ship else train(kind, args)
    ship(args.kind, trained, target, args.dev)


if __name__ == "__main__":
    main()
