"""The discriminator over the embedded Base: from plain text to the shipped folder, in one command.

    python recipes/discriminator.py --text wiki-*.txt.xz books.txt.xz --eval test.txt --work build

It begins with Base's encoder and learns of every token whether Base's student, which writes and does not learn, put it
there in the place of another (Clark et al. 2020). The embeddings and the lower layers stay Base's own, so that only what
lies above is stored, in eight bits. A stopped training goes on.
"""

import argparse
import json
import sys
from pathlib import Path

from embedded import ROOT, run, training_facts

sys.path.insert(0, str(ROOT))

START, WRITER, NAME = "bert-base-cased-embedded", "bert-base-cased-student", "electra-base-cased-embedded"
SETTINGS = {"objective": "mlm", "freeze-layers": 8, "steps": 2000, "batch-size": 8, "length": 128,
            "learning-rate": 1.5e-4, "warmup": 0.05, "mask-rate": 0.15, "dropout": 0, "precision": "bfloat16_products",
            "strategy": "one", "save-every": 50, "log-every": 10}  # fmt: skip
#: Of the documents one in so many is read: more than the training takes, from all parts of the corpus.
EVERY = 16
SHOWN = ("found", "accuracy", "auc")


def thin(files, target):
    """Writes one in `EVERY` documents of the corpus to a file."""
    from bert_tf.pretrain.documents import find_files, read_documents

    if target.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    chosen = ("\n".join(one) for number, one in enumerate(read_documents(find_files(files))) if number % EVERY == 0)
    part = target.with_suffix(".part")
    part.write_text("\n\n".join(chosen) + "\n", encoding="utf-8")
    part.rename(target)


def store(trained, target):
    """What differs from the model it began with, in eight bits."""
    from bert_tf import checkpoints
    from bert_tf.checkpoints.delta import save_over
    from bert_tf.checkpoints.reading import open_folder

    config, tokenizer, model = checkpoints.read(trained)
    config = config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    save_over(target, config, tokenizer, model, START, open_folder, dtype="int8")


def measure(model, text, *options):
    return json.loads(run("-m", "bert_tf", "evaluate", "mlm", "--model", model, "--text", text, "--limit", 300,
                          "--json", "--quiet", *options, capture=True))


def facts_of(output, target, figures):
    """What the model card says; ``figures`` are those of `full`, `stored` and, by words of the text's own, `own`."""
    from bert_tf.config import BertConfig, parameter_counts

    facts = training_facts([output])
    for name, value in figures.items():
        facts.update({f"{name}_{key}": f"{value[f'replaced_{key}']:.3f}" for key in SHOWN})
        facts[f"{name}_share"] = f"{value['replaced_share']:.3f}"
        facts[f"{name}_none"] = f"{1 - value['replaced_share']:.3f}"
    facts["parameters"] = f"{parameter_counts(BertConfig.from_json(target / 'config.json'), ('replaced',))['total']:,}"
    facts["megabytes"] = round(sum(path.stat().st_size for path in target.glob("*.safetensors")) / 1e6, 1)
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", nargs="+", required=True, help="corpus to train on")
    parser.add_argument("--eval", required=True, help="text to measure on, not in the corpus")
    parser.add_argument("--work", type=Path, default=Path("build"), help="folder for what is in between")
    parser.add_argument("--target", type=Path, default=ROOT / "assets" / "models" / NAME)
    parser.add_argument("--set", nargs=2, action="append", default=[], metavar=("OPTION", "VALUE"),
                        help="another setting of `pretrain`")  # fmt: skip
    args = parser.parse_args()
    output, text = args.work.resolve() / "run-discriminator", str(Path(args.eval).resolve())
    documents = args.work.resolve() / f"every-{EVERY}th.txt"
    thin([str(Path(one).resolve()) for one in args.text], documents)
    options = [part for name, value in {**SETTINGS, **dict(args.set)}.items() for part in (f"--{name}", value)]
    run("-m", "bert_tf", "pretrain", "--init", START, "--model-type", "electra", "--generator", WRITER, *options,
        "--output", output, "--corpus", args.work.resolve() / "ids-every", "--text", documents)
    store(output / "model", args.target)
    figures = {
        "full": measure(output / "model", text, "--generator", WRITER),
        "stored": measure(args.target, text, "--generator", WRITER),
        "own": measure(args.target, text),
    }
    facts = facts_of(output, args.target, figures)
    card = (ROOT / "recipes" / "card_discriminator.md").read_text(encoding="utf-8")
    for name, value in facts.items():
        card = card.replace("{" + name + "}", str(value))
    (args.target / "README.md").write_text(card, encoding="utf-8")
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
