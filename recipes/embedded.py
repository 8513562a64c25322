"""Makes the embedded models, from PyPI packages and plain text to the shipped folders, in one command.

    python recipes/registers.py --wiki wiki-*.txt.xz --books books.txt.xz --everyday everyday-*.txt.xz --output mixed
    python recipes/embedded.py base  --text wiki-*.txt.xz books.txt.xz --mixed mixed --valid valid.txt --eval test.txt
    python recipes/embedded.py small --text wiki-*.txt.xz books.txt.xz --mixed mixed --valid valid.txt --eval test.txt

Each step runs only if its result does not exist yet, so a stopped run is resumed: source (recipes/sources.py),
pre-training (`python -m bert_tf pretrain`, resumable), of Small the mean of its last runs, its position vectors from
128 on (recipes/positions.py) and its further training on mixed text and longer sequences, the choice among what these
gave, of Base its position vectors from 384 on (recipes/positions.py), storage in eight bits, measurement of both the
float32 and the stored model (`python -m bert_tf evaluate mlm`), the model card. A model whose accuracy at 256 or 512
tokens is more than two points below that at 128 is not shipped. The training took two CPU cores about three hours
(Base) and six and a half (Small). With `--gpu` Small goes on from there on a GPU (recipes/gpu.py, with Keras' JAX
backend) and ends with pairs of all lengths; so the shipped Small was made. Models that store only their differences
must be made again if the tensors that they use have changed: after Small the questions of recipes/tasks.py. Base and
all that lies over it can be trained further by recipes/gpu_base.py.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
NAMES = {"base": "bert-base-cased-embedded", "small": "bert-small-uncased-embedded"}
SHARD_BYTES = 58_000_000

_MUON = {"optimizer": "muon", "batch-size": 64, "learning-rate": 1.2e-3, "warmup": 100, "mask-rate": 0.25, "seed": 7}
_UPPER = {"optimizer": "muon", "batch-size": 32, "learning-rate": 3e-4, "warmup": 50, "freeze-layers": 8, "seed": 21}
#: Stages of `python -m bert_tf pretrain`, one after the other. `run` names the folder: the same name resumes the run
#: before it with other settings, another name starts from its model. Base first trains its new heads and top layers
#: over BERT's lower layers, then deeper layers, and then continues with Muon from the model stored in eight bits, with
#: the layers frozen that its student and the discriminator use. Small continues with smaller batches and lower rates
#: when its loss stops falling, and later with Muon, the first time from the model stored in eight bits.
CPU = {
    "base": [
        {
            "run": "heads",
            "steps": 1200,
            "stop-after": 1098,
            "batch-size": 16,
            "learning-rate": 2e-4,
            "freeze-layers": 8,
        },
        {
            "run": "deeper",
            "steps": 640,
            "batch-size": 16,
            "learning-rate": 1e-4,
            "warmup": 0.04,
            "freeze-layers": 4,
            "seed": 1,
        },
        {"run": "upper", "steps": 2300, "stop-after": 205, **_UPPER},
        {"run": "upper", "steps": 1700, **_UPPER},
    ],
    "small": [
        {"run": "all", "steps": 3000, "stop-after": 619, "batch-size": 32, "learning-rate": 5e-4},
        {"run": "all", "steps": 6000, "stop-after": 1723, "batch-size": 12, "learning-rate": 4.5e-4},
        {"run": "all", "steps": 5900, "stop-after": 2385, "batch-size": 16, "learning-rate": 3e-4},
        {"run": "all", "steps": 3050, "batch-size": 16, "learning-rate": 6e-4},
        {"run": "longer", "steps": 3000, "stop-after": 576, **_MUON},
        {"run": "longer", "steps": 2600, **_MUON},
        {"run": "further", "steps": 2900, **_MUON, "learning-rate": 1e-3, "warmup": 50, "seed": 11},
        {"run": "last", "steps": 620, **_MUON, "learning-rate": 5e-4, "warmup": 20, "mask-rate": 0.15, "seed": 13},
        {"run": "final", "steps": 1400, **_MUON, "learning-rate": 1e-3, "warmup": 50, "mask-rate": 0.2, "seed": 17},
    ],
}
#: The stored model is the weighted mean of the final models of these runs; the weights were chosen on WikiText-2's
#: valid.txt.
CPU_AVERAGE = {"small": {"further": 0.3, "last": 0.2, "final": 0.5}}
_MIXED = {"optimizer": "muon", "seed": 23}
_LENGTHS = {
    "objective": "mlm",
    "batch-size": 16,
    "phases": "256:0.2,512:0.8",
    "learning-rate": 8e-4,
    "warmup": 20,
    **_MIXED,
}
#: Stages that go on from the stored mean on the mixed text of recipes/registers.py: together one warm-up and one decay.
#: Up to there Small had read 128 tokens at a time, so the position vectors from 128 on come from a regression. The bulk
#: has full sequences of masked words; its decay was made steeper on the way. The end, which begins at the rate that the
#: bulk stopped at, has pairs again.
MIXED = {
    "small": [
        {"run": "lengths", "steps": 500, "stop-after": 25, **_LENGTHS},
        {"run": "lengths", "steps": 240, "stop-after": 180, **_LENGTHS},
        {
            "run": "pairs",
            "steps": 60,
            "batch-size": 32,
            "phases": "128:0.4,256:0.3,512:0.3",
            "learning-rate": 2.2e-4,
            "warmup": 3,
            **_MIXED,
        },
    ]
}
#: The share of what these stages end with in the stored mean; the rest is the model that they began with. Chosen on
#: WikiText-2's valid.txt and the held-back parts of the mixed text, among 0, 0.4, 0.6, 0.8 and 1 and then between two.
MIXED_SHARE = 0.7
#: Lengths to measure at, and the most that the accuracy may fall from the first of them to another.
LENGTHS, MOST_LOST = (128, 256, 512), 0.02
#: Small's training on a GPU: options of recipes/gpu.py. The rate was chosen between the best two of 1e-3, 2e-3 and 4e-3
#: after 400 updates.
LONG = {"small": {"minutes": 8.2, "learning-rate": 1.5e-3}}
#: The end after it: pairs of all lengths, so that the next-sentence head does not depend on the length.
ENDING = {
    "run": "ending",
    "steps": 300,
    "optimizer": "muon",
    "batch-size": 64,
    "phases": "32:0.35,64:0.25,128:0.25,256:0.1,512:0.05",
    "learning-rate": 4e-4,
    "warmup": 15,
    "freeze-layers": 3,
    "mask-rate": 0.15,
    "seed": 29,
}
#: What a card says of both.
LONG_TEXT = """
  From what these gave, stored in eight bits, it was trained further on one GPU by `recipes/gpu.py`: {updates} updates
  of 65,536 tokens, {tokens} in {minutes} minutes, on 361 MB of mixed text. Muon with one warm-up to {rate} and one
  decay to 0; 20% of the positions; sequences of 32 (mostly a single sentence), 128 and 512 tokens, half of the longer
  ones pairs, half of whose negatives came from the same document. Then on two CPU cores {pairs} updates
  ({pair_tokens} tokens) on pairs of 32 to 512 tokens, the embeddings and the lowest three layers frozen, so that the
  next-sentence score does not depend on the length."""
COMMON = {
    "warmup": 0.06,
    "mask-rate": 0.2,
    "dropout": 0,
    "precision": "bfloat16_products",
    "save-every": 200,
    "log-every": 10,
}


def run(*command, capture=False):
    """Runs a command of this project. Returns its standard output if captured."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        check=True,
        text=True,
        stdout=subprocess.PIPE if capture else None,
    )
    return done.stdout


def pretrain(stages, args, source, text, corpus):
    """Runs stages. Args: source: the model to start from. text: files to train on. corpus: folder of their tokens.

    Returns: the folders of their runs, in order, each once.
    """
    outputs = []
    for stage in stages:
        output = args.work / f"run-{args.kind}-{stage['run']}"
        start = with_lost_heads(outputs[-1] / "model", source) if outputs and output != outputs[-1] else source
        if output not in outputs:
            outputs.append(output)
        settings = {
            **COMMON,
            **{name: value for name, value in stage.items() if name != "run"},
            **dict(args.set),
        }
        source = start
        run(
            "-m",
            "bert_tf",
            "pretrain",
            "--init",
            start,
            "--output",
            output,
            "--corpus",
            corpus,
            "--text",
            *text,
            *options_of(settings),
        )
    return outputs


def regress_positions(trained, source, target):
    """The model with position vectors from 128 on (recipes/positions.py). Returns: its folder."""
    if not target.exists():
        run(ROOT / "recipes" / "positions.py", "regress", trained, target, source)
    return target


def continue_positions(trained, target, text, corpus):
    """The model with the position vectors that its source has lost (recipes/positions.py).

    Args: text: files to train them on. corpus: folder of their tokens.

    Returns: its folder.
    """
    if not target.exists():
        run(ROOT / "recipes" / "positions.py", "continue", trained, target, "--corpus", corpus, "--text", *text)
    return target


def with_lost_heads(trained, before):
    """A model with the heads that it lost: a training on masked words alone keeps neither pooler nor next sentence.

    Args: trained: folder. before: folder of the model that the training began with.

    Returns: the folder of the trained model, or of it with the lost heads of the model before.
    """
    from bert_tf import checkpoints
    from bert_tf.models import named_variables

    _, _, model = checkpoints.read(trained)
    config, tokenizer, complete = checkpoints.read(before)
    if not complete.bert_heads > model.bert_heads:
        return trained
    ours = named_variables(complete)
    for name, variable in named_variables(model).items():
        ours[name].assign(variable)
    return checkpoints.save(trained.parent / "model-all-heads", config, tokenizer, complete)


def train(args, source):
    """Everything from the source to trained models.

    Returns: (folders of all runs, in order; folders of the models to choose among).
    """
    outputs = pretrain(CPU[args.kind], args, source, args.text, args.work / f"ids-{args.kind}")
    best = start = outputs[-1] / "model"
    if args.kind in CPU_AVERAGE:
        shares = {
            args.work / f"run-{args.kind}-{name}" / "model": share for name, share in CPU_AVERAGE[args.kind].items()
        }
        best, start = average(shares, args.work / f"average-{args.kind}"), args.work / f"average-{args.kind}-stored"
        store(best, start)
        start = regress_positions(start, source, args.work / f"average-{args.kind}-positions")
    further = pretrain(
        MIXED.get(args.kind, []), args, start, [args.mixed / "train.txt"], args.work / f"ids-{args.kind}-mixed"
    )
    candidates = [best]
    if further:
        shares = {start: 1 - MIXED_SHARE, further[-1] / "model": MIXED_SHARE}
        candidates.append(average(shares, args.work / f"average-{args.kind}-mixed"))
    return [*outputs, *further], candidates


def train_long(args, trained):
    """Trains a model further on a GPU, and then with pairs of all lengths.

    Returns: (folder of the model, folder of the log of the GPU's training, folder of the run of pairs).
    """
    from bert_tf.checkpoints.reading import open_folder
    from bert_tf.pretraining.data.corpus import prepare_corpus

    start, result, model = (args.work / f"long-{args.kind}{part}" for part in ("-start", "", "-model"))
    store(trained, start)
    text, corpus, held = (
        [args.mixed / "long.txt"],
        args.work / f"ids-{args.kind}-long",
        args.work / f"ids-{args.kind}-held",
    )
    _, tokenizer, _ = open_folder(start)
    prepare_corpus(text, tokenizer, corpus)
    prepare_corpus([args.valid, args.mixed / "news.txt", args.mixed / "everyday.txt"], tokenizer, held)
    gpu = ROOT / "recipes" / "gpu.py"
    if not (result / "weights.safetensors").exists():
        run(gpu, start, result, "--corpus", corpus, "--held", held, *options_of(LONG[args.kind]))
    run(gpu, start, result, "--write", model)
    (ending,) = pretrain([ENDING], args, model, text, corpus)
    return ending / "model", result, ending


def average(shares, target):
    """The weighted mean of models that came one from another (Wortsman et al. 2022, "Model soups").

    Args: shares: dict folder of a model -> its share. target: folder to write.

    Returns: the folder of the mean, in float32.
    """
    from bert_tf import checkpoints

    read = [checkpoints.read(folder) for folder in shares]
    config, tokenizer, model = read[-1]
    weights = zip(*(model.get_weights() for _, _, model in read))
    model.set_weights([sum(share * part for share, part in zip(shares.values(), parts)) for parts in weights])
    return checkpoints.save(target, config, tokenizer, model)


def store(trained, target):
    """The trained float32 model in eight bits, in shards."""
    from bert_tf import checkpoints

    config, tokenizer, model = checkpoints.read(trained)
    config = config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    checkpoints.save(target, config, tokenizer, model, dtype="int8", max_shard_bytes=SHARD_BYTES)


def store_over(trained, target, base):
    """What differs of the trained float32 model from the shipped one called `base`, in eight bits."""
    from bert_tf import checkpoints
    from bert_tf.checkpoints.delta import save_delta
    from bert_tf.checkpoints.reading import open_folder

    config, tokenizer, model = checkpoints.read(trained)
    config = config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    save_delta(target, config, tokenizer, model, base, open_folder, dtype="int8")


def measure(model, text, *options, limit=1000):
    return json.loads(
        run(
            "-m",
            "bert_tf",
            "evaluate",
            "mlm",
            "--model",
            model,
            "--text",
            text,
            "--limit",
            limit,
            "--json",
            "--quiet",
            *options,
            capture=True,
        )
    )


def by_length(model, text):
    """The reports of `evaluate mlm` at each of `LENGTHS`, the accuracy at each place included."""
    return measure(model, text, "--length", *LENGTHS, "--by-position")["lengths"]


def by_register(model, args):
    """The share of masked words that a model finds in each kind of text that it was not trained on."""
    texts = {"encyclopaedia": args.valid, "news": args.mixed / "news.txt", "everyday": args.mixed / "everyday.txt"}
    return {register: measure(model, text)["top1"] for register, text in texts.items()}


def check_lengths(reports):
    """Refuses a model that reads long texts worse than short ones. Args: reports: as from `by_length`.

    Raises: ValueError if the accuracy at a length is more than `MOST_LOST` below that at the first.
    """
    short, *longer = reports
    for report in longer:
        if report["top1"] < short["top1"] - MOST_LOST:
            raise ValueError(
                f"Not shipped: the model finds {report['top1']:.1%} of the masked words in sequences of "
                f"{report['length']} tokens and {short['top1']:.1%} in those of {short['length']}. At most "
                f"{MOST_LOST * 100:g} points may be lost; train it further on long sequences."
            )


def training_facts(outputs):
    """What the runs' own logs say of them together: updates, tokens seen, hours."""
    total = {"steps": 0, "tokens": 0, "hours": 0.0}
    for output in outputs:
        records = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
        latest = {record["step"]: record for record in records}
        for before, step in zip([0, *sorted(latest)], sorted(latest)):
            seconds = (step - before) * latest[step]["seconds_per_step"]
            total["steps"] += step - before
            total["tokens"] += seconds * latest[step]["tokens_per_second"]
            total["hours"] += seconds / 3600
    return {
        "steps": f"{total['steps']:,}",
        "tokens": f"{total['tokens'] / 1e6:.1f} million",
        "hours": f"{total['hours']:.1f}",
    }


def long_training(result, ending):
    """What a card says of `train_long`. Args: result, ending: folders, as it returns them."""
    summary, pairs = json.loads((result / "summary.json").read_text()), training_facts([ending])
    return LONG_TEXT.format(
        updates=f"{summary['updates']:,}",
        tokens=f"{summary['tokens'] / 1e6:,.0f} million",
        minutes=f"{summary['minutes']:.1f}",
        rate=f"{summary['learning_rate']:g}",
        pairs=pairs["steps"],
        pair_tokens=pairs["tokens"],
    )


def facts_of(outputs, target, full, lengths, registers, long=""):
    """The figures of a model card.

    Args:
        full: report of the float32 model. lengths: as from `by_length`. registers: as from `by_register`; both of the
            stored model.
        long: str. As from `long_training`.
    """
    facts = training_facts(outputs)
    for name, value in (("full", full), ("stored", lengths[0])):
        facts.update({f"{name}_{key}": f"{value[key]:.3f}" for key in ("top1", "top5", "nsp_accuracy")})
        facts[f"{name}_pseudo_perplexity"] = f"{value['pseudo_perplexity']:.1f}"
    facts.update({f"length_{report['length']}": f"{report['top1']:.3f}" for report in lengths})
    facts.update({name: f"{share:.3f}" for name, share in registers.items()})
    sentences = json.loads(run(ROOT / "benchmarks" / "everyday.py", "--json", target, capture=True))
    facts.update({name: sentences[name] for name in ("first", "among_five", "repeats")})
    facts["megabytes"] = megabytes(target)
    return {**facts, "long": long}


def megabytes(folder):
    """What a model's weights take on disk."""
    return round(sum(path.stat().st_size for path in folder.glob("*.safetensors")) / 1e6, 1)


def options_of(settings):
    """Settings of a command as its arguments."""
    return [text for name, value in settings.items() for text in (f"--{name}", value)]


def absolute(path):
    """The whole path of a folder that the user named, for commands that run in another folder (`run`)."""
    return Path(path).resolve()


def add_arguments(parser, name=None):
    """What every recipe of a pre-trained model is told. Args: name: of the shipped folder."""
    parser.add_argument("--text", nargs="+", required=True, help="corpus for the training")
    parser.add_argument("--eval", required=True, help="text for the evaluation, not in the corpus")
    parser.add_argument("--work", type=Path, default=Path("build"), help="folder for intermediate files")
    parser.add_argument(
        "--target",
        type=absolute,
        default=name and ROOT / "assets" / "models" / name,
        help="default: assets/models/NAME",
    )
    parser.add_argument(
        "--set", nargs=2, action="append", default=[], metavar=("OPTION", "VALUE"), help="another setting of `pretrain`"
    )


def card(kind, facts):
    text = (ROOT / "recipes" / f"card_{kind}.md").read_text(encoding="utf-8")
    for name, value in facts.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=NAMES)
    add_arguments(parser)
    parser.add_argument("--mixed", type=Path, required=True, help="folder made by recipes/registers.py")
    parser.add_argument("--valid", required=True, help="encyclopaedic text for the choice, not in the corpus")
    parser.add_argument(
        "--gpu", action="store_true", help="small: go on on a GPU at the end (base: recipes/gpu_base.py)"
    )
    args = parser.parse_args()
    if args.gpu and args.kind not in LONG:
        parser.error(f"{args.kind} is trained on a GPU by recipes/gpu_base.py, with all that lies over it.")
    args.work, args.mixed = args.work.resolve(), args.mixed.resolve()
    args.text = [str(Path(path).resolve()) for path in args.text]
    args.eval, args.valid = str(Path(args.eval).resolve()), str(Path(args.valid).resolve())

    source = args.work / f"source-{args.kind}"
    target = args.target or ROOT / "assets" / "models" / NAMES[args.kind]
    if not (source / "vocab.txt").exists():
        run(ROOT / "recipes" / "sources.py", args.kind, source)
    outputs, candidates = train(args, source)
    shares_by_model = {model: by_register(model, args) for model in candidates}
    print(json.dumps({str(model): shares for model, shares in shares_by_model.items()}, indent=1))
    trained = max(shares_by_model, key=lambda model: sum(shares_by_model[model].values()))
    if args.kind == "base":
        trained = continue_positions(trained, args.work / "base-positions", args.text, args.work / "ids-base-positions")
    long = ""
    if args.gpu:
        trained, *logs = train_long(args, trained)
        long = long_training(*logs)
    stored = args.work / NAMES[args.kind]
    store(trained, stored)
    lengths = by_length(stored, args.eval)
    check_lengths(lengths)
    facts = facts_of(outputs, stored, measure(trained, args.eval), lengths, by_register(stored, args), long)
    (stored / "README.md").write_text(card(args.kind, facts), encoding="utf-8")
    shutil.copytree(stored, target, dirs_exist_ok=True)
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
