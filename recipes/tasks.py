"""Makes the four shipped fine-tuned models, from their data sets to the shipped folders.

    python recipes/tasks.py sentiment --train sst2/train.tsv --dev sst2/dev.tsv --work build
    python recipes/tasks.py words     --train en_ewt-ud-train.conllu --dev en_ewt-ud-dev.conllu --work build
    python recipes/tasks.py entities  --train wnut17train.conll --dev emerging.dev.conll --work build
    python recipes/tasks.py questions --train squad-train.json --work build

Each model is based on an embedded model: only its head and what was trained are stored, so all four together take under
40 MB. For sentiment low-rank updates of all layers of Base are trained (LoRA), on all examples in 40 minutes on two
cores; for words too, in 25 minutes, and for entities, in 10.
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

ROOT = Path(__file__).resolve().parent.parent
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


def train(kind, args):
    """Runs the training. Returns: its folder."""
    output = args.work / kind.name
    held = ["--dev", args.dev] if args.dev else ["--dev-share", "0.1"]
    settings = {**COMMON, **kind.options, **dict(args.set)}
    subprocess.run(
        [
            sys.executable,
            "-m",
            "bert_tf",
            "finetune",
            kind.task,
            "--model",
            kind.start,
            "--train",
            args.train,
            *held,
            "--output",
            output,
            *([] if "lora" in settings else ["--delta"]),
            "--store",
            "int8",
            *(str(part) for key, value in settings.items() for part in (f"--{key}", value)),
        ],
        cwd=ROOT,
        check=True,
    )
    return output


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
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.train, args.dev = (path and str(Path(path).resolve()) for path in (args.train, args.dev))
    kind = RECIPES[args.kind]
    ship(args.kind, train(kind, args), args.target or ROOT / "assets" / "models" / kind.name, args.dev)


if __name__ == "__main__":
    main()
