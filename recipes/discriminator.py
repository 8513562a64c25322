"""Makes the discriminator over the embedded Base: from plain text to the shipped folder, in one command.

    python recipes/discriminator.py --text wiki-*.txt.xz books.txt.xz --eval test.txt --work build

It starts with Base's encoder and learns for every token whether Base's student, a fixed generator, replaced it (Clark
et al. 2020). The embeddings and the lower layers are frozen, so only the layers above are stored, in eight bits. A
stopped training is resumed.
"""

import argparse
import json
import sys
from pathlib import Path

from embedded import ROOT, add_arguments, card, measure, megabytes, options_of, run, store_over, training_facts

sys.path.insert(0, str(ROOT))

START, WRITER, NAME = "bert-base-cased-embedded", "bert-base-cased-student", "electra-base-cased-embedded"
SETTINGS = {
    "objective": "mlm",
    "freeze-layers": 8,
    "steps": 2000,
    "batch-size": 8,
    "length": 128,
    "learning-rate": 1.5e-4,
    "warmup": 0.05,
    "mask-rate": 0.15,
    "dropout": 0,
    "precision": "bfloat16_products",
    "strategy": "one",
    "save-every": 50,
    "log-every": 10,
}
#: One in this number of documents is read: more text than the training needs, from all parts of the corpus.
EVERY = 16
SEQUENCES = 300  # for the figures
METRICS = ("found", "accuracy", "auc")


def thin(files, target):
    """Writes one in `EVERY` documents of the corpus to a file."""
    from bert_tf.pretraining.data.documents import find_files, read_documents

    if target.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    chosen = ("\n".join(one) for number, one in enumerate(read_documents(find_files(files))) if number % EVERY == 0)
    part = target.with_suffix(".part")
    part.write_text("\n\n".join(chosen) + "\n", encoding="utf-8")
    part.rename(target)


def facts_of(output, target, figures):
    """What the model card says; ``figures`` are those of `full`, `stored` and, by words of the text's own, `own`."""
    from bert_tf.config import BertConfig
    from bert_tf.parameters import parameter_counts

    facts = training_facts([output])
    for name, value in figures.items():
        facts.update({f"{name}_{key}": f"{value[f'replaced_{key}']:.3f}" for key in METRICS})
        facts[f"{name}_share"] = f"{value['replaced_share']:.3f}"
        facts[f"{name}_none"] = f"{1 - value['replaced_share']:.3f}"
    facts["parameters"] = f"{parameter_counts(BertConfig.from_json(target / 'config.json'), ('replaced',))['total']:,}"
    facts["megabytes"] = megabytes(target)
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser, NAME)
    args = parser.parse_args()
    output, text = args.work.resolve() / "run-discriminator", str(Path(args.eval).resolve())
    documents = args.work.resolve() / f"every-{EVERY}th.txt"
    thin([str(Path(one).resolve()) for one in args.text], documents)
    options = options_of({**SETTINGS, **dict(args.set)})
    run(
        "-m",
        "bert_tf",
        "pretrain",
        "--init",
        START,
        "--model-type",
        "electra",
        "--generator",
        WRITER,
        *options,
        "--output",
        output,
        "--corpus",
        args.work.resolve() / "ids-every",
        "--text",
        documents,
    )
    store_over(output / "model", args.target, START)
    figures = {
        "full": measure(output / "model", text, "--generator", WRITER, limit=SEQUENCES),
        "stored": measure(args.target, text, "--generator", WRITER, limit=SEQUENCES),
        "own": measure(args.target, text, limit=SEQUENCES),
    }
    facts = facts_of(output, args.target, figures)
    (args.target / "README.md").write_text(card("discriminator", facts), encoding="utf-8")
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
