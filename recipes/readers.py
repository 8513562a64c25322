"""Makes the three models that compare reading directions, from plain text to the shipped folders.

    python recipes/readers.py wiki-*.txt books.txt --eval test.txt --work build

A left-to-right model, a two-one-way model and a BERT, all with 4 layers of width 128 (the two-one-way model has two
layers for each direction), are trained with `python -m bert_tf pretrain` on the same text, in the same order, on the
same number of tokens, from the same initial token vectors, with the same number of predicted words. Then the BERT,
which learns more slowly from masks, is trained on two thirds more tokens. Each step runs only if its result does not
exist yet, so a stopped run is resumed:

- text: articles and chapters with common words and short sentences (`recipes/watched_text.py`);
- vocabulary: the word pieces of the embedded Small that are most frequent in the text;
- start: random weights, except the token vectors: those of Small, reduced to 128 numbers by principal components;
- training, storage in eight bits, measurement (`python -m bert_tf evaluate mlm --alone`), model cards.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "recipes")]
SOURCE, VOCABULARY, WIDTH, LAYERS, HEADS, POSITIONS = "bert-small-uncased-embedded", 8000, 128, 4, 4, 128

#: Folder's name -> (model type, stacks, options of `pretrain` that are its own, updates of each round of training).
#: After one round all have read the same text; the second is only for the BERT, which learns more slowly from masks.
READERS = {
    "reader-both-ways": ("bert", 1, {"objective": "mlm", "mask-rate": 0.25}, (1500, 1000)),
    "reader-left-to-right": ("left-to-right", 1, {"objective": "clm", "max-predictions": 16}, (1500,)),
    "reader-two-one-way": ("two-one-way", 2, {"objective": "clm", "max-predictions": 16}, (1500,)),
}
COMMON = {
    "batch-size": 32,
    "length": 64,
    "learning-rate": 2e-3,
    "warmup": 0.05,
    "dropout": 0,
    "precision": "bfloat16_products",
    "threads": 2,
    "strategy": "one",
    "save-every": 500,
    "log-every": 50,
}


def choose_text(paths, target):
    """Writes the plain documents of all files into one."""
    from watched_text import common_words, documents, is_plain

    common = common_words(paths)
    chosen = [document for document in documents(paths) if is_plain(document, common)]
    target.write_text("\n\n".join(chosen) + "\n", encoding="utf-8")


def choose_vocabulary(text, folder):
    """The tokenizer of the most used pieces of Small's vocabulary, all letters and special tokens among them."""
    from bert_tf import checkpoints
    from bert_tf.tokenizers import Tokenizer, read_tokenizer

    whole = read_tokenizer(checkpoints.find(SOURCE))
    counts = Counter()
    for line in text.read_text(encoding="utf-8").splitlines():
        counts.update(whole.tokenize(line).ids.tolist())
    always = {
        index
        for index, token in enumerate(whole.vocab)
        if index in whole.special_ids or (len(token.removeprefix("##")) == 1 and counts[index])
    }
    rest = [index for index, _ in counts.most_common() if index not in always]
    kept = sorted([*always, *rest[: VOCABULARY - len(always)]])
    Tokenizer([whole.vocab[index] for index in kept], lower_case=True).save(folder)


def make_start(name, tokenizer, folder):
    """Random weights with Small's token vectors, reduced; the same for every reader."""
    import keras

    from bert_tf import checkpoints
    from bert_tf.config import BertConfig
    from bert_tf.models import build_pretraining_model, named_variables

    kind, stacks, *_ = READERS[name]
    config = BertConfig(
        model_type=kind,
        vocab_size=tokenizer.vocab_size,
        num_hidden_layers=LAYERS // stacks,
        hidden_size=stacks * WIDTH,
        num_attention_heads=stacks * HEADS,
        intermediate_size=stacks * 4 * WIDTH,
        max_position_embeddings=POSITIONS,
    )
    keras.utils.set_random_seed(0)
    model = build_pretraining_model(config, heads=("mlm",))
    named_variables(model)["bert.embeddings.word_embeddings.weight"].assign(token_vectors(tokenizer))
    checkpoints.save(folder, config, tokenizer, model)


def token_vectors(tokenizer):
    """Small's vectors of these tokens on their first `WIDTH` principal components, twice as long as BERT's first."""
    from bert_tf import checkpoints

    _, whole, model = checkpoints.read(checkpoints.find(SOURCE))
    places = {token: row for row, token in enumerate(whole.vocab)}
    rows = [places[token] for token in tokenizer.vocab]
    vectors = np.asarray(model.bert_layers["embeddings"].token_table)[rows]
    vectors = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(vectors.T @ vectors)
    reduced = vectors @ directions[:, ::-1][:, :WIDTH]
    return (reduced * (0.04 / reduced.std())).astype(np.float32)


def train(name, start, work, text):
    """Every round of a reader's training, each from the model before it. Returns: the folders of the rounds."""
    options, outputs = {**COMMON, **READERS[name][2]}, []
    for number, steps in enumerate(READERS[name][3]):
        output = work / f"run-{name}-{number}"
        if not (output / "model" / "config.json").exists():
            run(
                "pretrain",
                "--init",
                start,
                "--text",
                text,
                "--corpus",
                work / "ids",
                "--output",
                output,
                "--seed",
                number,
                "--steps",
                steps,
                *(part for key, value in options.items() for part in (f"--{key}", value)),
            )
        outputs.append(output)
        start = output / "model"
    return outputs


def run(*command, capture=False):
    """A command of this project. Returns its standard output if captured."""
    done = subprocess.run(
        [sys.executable, "-m", "bert_tf", *map(str, command)],
        cwd=ROOT,
        check=True,
        text=True,
        stdout=subprocess.PIPE if capture else None,
    )
    return done.stdout


def store(trained, target):
    """The trained float32 model in eight bits, with the dropout of a model that is to learn on."""
    from bert_tf import checkpoints

    config, tokenizer, model = checkpoints.read(trained)
    config = config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    checkpoints.save(target, config, tokenizer, model, dtype="int8")


def measure(model, text):
    return json.loads(
        run(
            "evaluate",
            "mlm",
            "--model",
            model,
            "--text",
            text,
            "--alone",
            "--length",
            COMMON["length"],
            "--json",
            "--quiet",
            capture=True,
        )
    )


def write_card(name, target, reports, documents):
    """The model card, with its figures as they came out."""
    from bert_tf.config import BertConfig
    from bert_tf.parameters import parameter_counts

    config = BertConfig.from_json(target / "config.json")
    steps = sum(READERS[name][3])
    facts = {
        "name": name,
        "steps": f"{steps:,}",
        "documents": f"{documents:,}",
        "tokens": f"{steps * COMMON['batch-size'] * COMMON['length'] / 1e6:.1f} million",
        "parameters": f"{parameter_counts(config, ('mlm',))['total']:,}",
        "megabytes": f"{sum(path.stat().st_size for path in target.glob('*.safetensors')) / 1e6:.1f}",
        "sequences": f"{reports['first']['sequences']:,}",
        "about": ABOUT[name],
    }
    for kind, report in reports.items():
        facts |= {
            f"{kind}_top1": f"{report['top1']:.3f}",
            f"{kind}_top5": f"{report['top5']:.3f}",
            f"{kind}_perplexity": f"{report['pseudo_perplexity']:.0f}",
        }
    text = (ROOT / "recipes" / "card_reader.md").read_text(encoding="utf-8")
    for key, value in facts.items():
        text = text.replace("{" + key + "}", value)
    (target / "README.md").write_text(text, encoding="utf-8")


ABOUT = {
    "reader-both-ways": (
        "A BERT: every token sees every other one. 4 layers, hidden size 128, 4 heads. It learnt by masked language "
        "modelling alone: 25% of the places chosen (80% [MASK], 10% random, 10% kept)."
    ),
    "reader-left-to-right": (
        "A left-to-right reader: every token sees itself and those before it, and each place is predicted from the "
        "state before it. 4 layers, hidden size 128, 4 heads. It learnt by causal language modelling, 16 places of "
        "each sequence drawn at random (as many as the BERT beside it predicts)."
    ),
    "reader-two-one-way": (
        "Two one-way readers side by side, ELMo's way: 2 layers from left to right and 2 from right to left, each 128 "
        "wide with 4 heads, over the same embeddings; each place is predicted from the state before it and the state "
        "after it. It learnt by causal language modelling in both directions at once, 16 places of each sequence drawn "
        "at random (as many as the BERT beside it predicts)."
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="+", help="files of text")
    parser.add_argument("--eval", required=True, help="text for the evaluation, not in the corpus")
    parser.add_argument("--work", type=Path, default=Path("build"), help="folder for intermediate files")
    parser.add_argument("--target", type=Path, default=ROOT / "assets" / "models", help="folder of the three models")
    args = parser.parse_args()
    work, held_out = args.work.resolve(), str(Path(args.eval).resolve())
    folder = args.target.resolve()
    work.mkdir(parents=True, exist_ok=True)
    text, vocabulary = work / "text.txt", work / "vocab"
    if not text.exists():
        choose_text(args.text, text)
    if not vocabulary.exists():
        choose_vocabulary(text, vocabulary)
    from bert_tf.tokenizers import read_tokenizer

    tokenizer = read_tokenizer(vocabulary)
    documents = text.read_text(encoding="utf-8").count("\n\n") + 1
    for name in READERS:
        start, target = work / f"start-{name}", folder / name
        if not (start / "config.json").exists():
            make_start(name, tokenizer, start)
        outputs = train(name, start, work, text)
        store(outputs[-1] / "model", target)
        reports = {"first": measure(outputs[0] / "model", held_out), "stored": measure(target, held_out)}
        write_card(name, target, reports, documents)


if __name__ == "__main__":
    main()
