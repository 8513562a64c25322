"""Makes the student of the embedded Base, with half its layers: from plain text to the shipped folder, in one command.

    python recipes/student.py --text wiki-*.txt.xz books.txt.xz --eval test.txt --work build

It starts from six of Base's twelve layers, evenly spread, and learns from Base's softened predictions, the masked
words, the last hidden states (Sanh et al. 2019) and the next sentence. Token vectors and the lowest layer are frozen,
so only the layers above are stored, in eight bits. A stopped training is resumed.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from embedded import ROOT, add_arguments, card, measure, megabytes, options_of, run, store_over, training_facts

sys.path.insert(0, str(ROOT))

TEACHER, NAME, LAYERS = "bert-base-cased-embedded", "bert-base-cased-student", 6
SETTINGS = {
    "objective": "mlm+nsp",
    "freeze-layers": 1,
    "steps": 500,
    "batch-size": 16,
    "length": 128,
    "learning-rate": 2e-4,
    "warmup": 0.05,
    "mask-rate": 0.2,
    "dropout": 0,
    "precision": "bfloat16_products",
    "strategy": "one",
    "save-every": 100,
    "log-every": 10,
}


TEXT = " ".join(["The people of the city walked along the river and looked at the boats."] * 8)


def untrained(folder):
    """The student as it begins: what its training is worth is how far it comes from here."""
    from bert_tf import checkpoints
    from bert_tf.pretraining.objectives.distillation import build_student

    _, tokenizer, teacher = checkpoints.read(checkpoints.find(TEACHER))
    student = build_student(teacher, LAYERS)
    checkpoints.save(folder, student.bert_config, tokenizer, student)


def speed(target, rounds=15):
    """How many times as fast as its teacher it reads a text of 114 tokens: medians of interleaved passes."""
    import bert_tf

    models, times = [bert_tf.load(TEACHER), bert_tf.load(target)], ([], [])
    for turn in range(rounds + 3):
        for model, model_times in zip(models, times):
            seconds = model.trace(TEXT, mask=(5,)).seconds
            if turn >= 3:
                model_times.append(seconds)
    teacher, student = map(statistics.median, times)
    return teacher / student


def facts_of(output, target, figures):
    """What the model card says; ``figures`` are those of `start`, `full`, `stored` and `teacher`."""
    facts = training_facts([output])
    for name, value in figures.items():
        facts.update({f"{name}_{key}": f"{value[key]:.3f}" for key in ("top1", "top5", "nsp_accuracy")})
        facts[f"{name}_pseudo_perplexity"] = f"{value['pseudo_perplexity']:.1f}"
    facts["share"] = f"{figures['stored']['top1'] / figures['teacher']['top1']:.0%}"
    facts["speed"] = f"{speed(target):.1f}"
    facts["megabytes"] = megabytes(target)
    return facts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser, NAME)
    args = parser.parse_args()
    output, text = args.work.resolve() / "run-student", str(Path(args.eval).resolve())
    options = options_of({**SETTINGS, **dict(args.set)})
    teach = ("-m", "bert_tf", "pretrain", "--teacher", TEACHER, "--student-layers", LAYERS, *options)
    corpus = ("--corpus", args.work.resolve() / "ids-base", "--text", *(Path(one).resolve() for one in args.text))
    start = args.work.resolve() / "student-start"
    untrained(start)
    run(*teach, "--output", output, *corpus)
    store_over(output / "model", args.target, TEACHER)
    figures = {
        name: measure(model, text)
        for name, model in (("start", start), ("full", output / "model"), ("stored", args.target), ("teacher", TEACHER))
    }
    facts = facts_of(output, args.target, figures)
    (args.target / "README.md").write_text(card("student", facts), encoding="utf-8")
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
