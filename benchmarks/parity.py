"""Parity with Transformers at full size: random weights, saved by Transformers, read and run here.

    python benchmarks/parity.py [--models bert-base bert-large roberta-base ...] [--engines keras openvino tensorflow]
        [--tokens 128] [--json FILE]
    python benchmarks/parity.py --trained MODEL ... --text FILE [--texts 20] [--tokens 128] [--json FILE]

The second form compares the engines on trained weights with the Keras model of the same folder, over the first texts of
at least 200 characters of a file; its last column is the largest value of a hidden state.

Compares every hidden state, every attention map, the pooled output and each head's logits at the real positions of a
padded batch, and prints the largest absolute difference of each, as a Markdown table. A model is named by its
architecture and size. An engine is the Keras model, or one of the runtime's engines, which the command line and the
pages use. "Decisions" are the argmax of the logits of masked words and pairs, and for replaced tokens the sign of the
logit. Exit code 1 if a hidden state or logit differs by more than 1e-4 (trained weights: 1e-3), or a decision anywhere.
"""

import argparse
import gc
import json
import math
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

TOLERANCE = 1e-4
OUTPUTS = (
    "hidden_states",
    "attentions",
    "pooled_output",
    "mlm_logits_all",
    "nsp_logits",
    "sop_logits",
    "replaced_logits",
)
DECIDED = ("mlm_logits_all", "nsp_logits", "sop_logits", "replaced_logits")
MODELS = (
    "bert-base",
    "bert-large",
    "roberta-base",
    "roberta-large",
    "distilbert-base",
    "albert-base",
    "albert-large",
    "albert-xlarge",
    "albert-xxlarge",
    "electra-small",
    "electra-base",
    "electra-large",
    "electra-small-generator",
    "electra-base-generator",
    "electra-large-generator",
)
ENGINES = ("keras", "openvino", "tensorflow")


def make_batch(config, tokens):
    rng = np.random.default_rng(0)
    ids = rng.integers(1000, config.vocab_size, (2, tokens))
    padding = np.ones_like(ids)
    padding[1, tokens * 3 // 4 :] = 0
    segments = np.zeros_like(ids)
    if config.type_vocab_size > 1:
        segments[:, tokens // 2 :] = 1
    return {
        "token_ids": np.where(padding == 1, ids, config.pad_token_id),
        "segment_ids": segments * padding,
        "padding_mask": padding,
    }


def run_transformers(config, heads, batch, folder, maps):
    """Saves a random model to the folder. Returns: dict of arrays under this project's names."""
    import torch
    import transformers

    torch.manual_seed(0)
    kind = getattr(transformers, config.architecture.transformers_class(heads))
    settings = {name: value for name, value in config.to_hf_dict().items() if name != "architectures"}
    model = kind(kind.config_class(**settings, attn_implementation="eager"))
    if "pooler" in heads and getattr(model.base_model, "pooler", None) is None:
        # RoBERTa is pre-trained without the pooler that its encoder has in Transformers.
        setattr(model, model.base_model_prefix, type(model.base_model)(model.config, add_pooling_layer=True))
        model.tie_weights()
    model.eval()
    model.save_pretrained(folder)
    inputs = {"input_ids": batch["token_ids"], "attention_mask": batch["padding_mask"]}
    if config.type_vocab_size:
        inputs["token_type_ids"] = batch["segment_ids"]
    inputs = {name: torch.tensor(value) for name, value in inputs.items()}
    with torch.no_grad():
        transformers_outputs = model(**inputs, output_hidden_states=True, output_attentions=maps)
        pooled = model.base_model(**inputs).get("pooler_output") if "pooler" in heads else None
    logits = transformers_outputs.get("prediction_logits", transformers_outputs.get("logits"))
    values = {
        "pooled_output": pooled,
        "nsp_logits": transformers_outputs.get("seq_relationship_logits"),
        "sop_logits": transformers_outputs.get("sop_logits"),
    }
    if logits is not None:  # Transformers has no discriminator of DeBERTa
        values["replaced_logits" if logits.ndim == 2 else "mlm_logits_all"] = logits
    return {
        "hidden_states": [x.numpy() for x in transformers_outputs.hidden_states],
        **({"attentions": [x.numpy() for x in transformers_outputs.attentions]} if maps else {}),
        **{name: value.numpy() for name, value in values.items() if value is not None},
    }


def write_vocabulary(folder, config):
    """A vocabulary of the right kind and size; its words mean nothing."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    size, kind = config.vocab_size, config.architecture.tokenizer
    if kind == "wordpiece":
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(size - 5))]
        (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    elif kind == "bytes":
        known = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *pre_tokenizers.ByteLevel.alphabet()]
        words = known + [f"w{i}" for i in range(size - len(known))]
        (folder / "vocab.json").write_text(json.dumps({word: index for index, word in enumerate(words)}))
        (folder / "merges.txt").write_text("#version: 0.2\n")
    else:
        words = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(size - 5))]
        Tokenizer(models.Unigram([(word, 0.0) for word in words], 1, False)).save(str(folder / "tokenizer.json"))


def run_ours(model, batch, outputs, engine):
    """Returns: dict of arrays, or of lists of one array a layer, of a `BertModel` on one of `ENGINES`."""
    from bert_tf.models import view
    from bert_tf.runtime import Runtime

    inputs = {name: array.astype("int32") for name, array in batch.items()}
    values = view(model, outputs)(inputs) if engine == "keras" else Runtime(model, engine=engine).run(inputs, outputs)
    return as_arrays(values)


def difference(name, ours, theirs, real):
    """Largest absolute difference at the real positions; infinite if a value is not a number."""
    if isinstance(theirs, list):
        return max(difference(name, a, b, real) for a, b in zip(ours, theirs, strict=True))
    if name == "attentions":
        ours, theirs = ours.swapaxes(1, 2), theirs.swapaxes(1, 2)
    if theirs.shape[:2] == real.shape:
        ours, theirs = ours[real], theirs[real]
    largest = float(np.abs(ours - theirs).max())
    return math.inf if math.isnan(largest) else largest  # a `max` over figures may pass over NaN


def same_decisions(name, ours, theirs, real):
    """Whether both choose the same at every real position, or for every pair."""
    if name == "replaced_logits":
        ours, theirs = ours > 0, theirs > 0
    else:
        ours, theirs = ours.argmax(-1), theirs.argmax(-1)
    return bool((ours == theirs)[real if theirs.shape == real.shape else ...].all())


def compare(name, tokens, engines, maps=True):
    """Yields one row of figures an engine, a dict."""
    from bert_tf import checkpoints
    from bert_tf.architectures import ARCHITECTURES
    from bert_tf.config import BertConfig

    model_type = max((one for one in ARCHITECTURES if name.startswith(f"{one}-")), key=len)
    size = name.removeprefix(f"{model_type}-")
    config = BertConfig.named(size, model_type)
    trained = ("mlm",) if size.endswith("generator") else config.architecture.trained
    heads = tuple(head for head in config.architecture.heads if head in (*trained, "pooler"))
    batch = make_batch(config, tokens)
    real = batch["padding_mask"].astype(bool)
    with tempfile.TemporaryDirectory() as folder:
        theirs = run_transformers(config, heads, batch, folder, maps)
        gc.collect()
        write_vocabulary(Path(folder), config)
        model = checkpoints.read(folder)[2]
    for engine in engines:
        ours = run_ours(model, batch, tuple(theirs), engine)
        row = {
            "model": name,
            "engine": engine,
            "tokens": tokens,
            **{output: difference(output, ours[output], theirs[output], real) for output in theirs},
        }
        row["decisions_equal"] = all(
            same_decisions(output, ours[output], theirs[output], real) for output in DECIDED if output in theirs
        )
        yield row


def compare_trained(name, texts, tokens):
    """Yields one row of figures an engine, a dict: its differences from the Keras model over some texts."""
    import bert_tf
    from bert_tf.model_outputs import NEEDS
    from bert_tf.models import view
    from bert_tf.runtime import Runtime

    bert = bert_tf.load(name)
    outputs = tuple(output for output in OUTPUTS if bert.heads.issuperset(NEEDS.get(output, ())))
    keras_model = view(bert.model, outputs)
    engines = {engine: Runtime(bert.weights, engine=engine) for engine in ENGINES[1:]}
    rows = {engine: {"model": name, "engine": engine, "tokens": tokens, "decisions_equal": True} for engine in engines}
    for text in texts:
        ids = np.asarray(bert.tokenizer.encode(text, max_length=tokens).token_ids, np.int32)[None]
        batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        theirs, real = as_arrays(keras_model(batch)), np.ones(ids.shape, bool)
        for engine, row in rows.items():
            ours = as_arrays(engines[engine].run(batch, outputs))
            for output in outputs:
                row[output] = max(row.get(output, 0.0), difference(output, ours[output], theirs[output], real))
                if output in DECIDED:
                    row["decisions_equal"] &= same_decisions(output, ours[output], theirs[output], real)
            largest = float(max(np.abs(states).max() for states in theirs["hidden_states"]))
            row["largest_state"] = max(row.get("largest_state", 0.0), largest)
    yield from rows.values()


def as_arrays(values):
    """Outputs as arrays, or as lists of one array a layer."""
    return {
        name: [np.asarray(x) for x in value] if isinstance(value, (list, tuple)) else np.asarray(value)
        for name, value in values.items()
    }


def format_figure(value):
    if value is None:
        return "–"
    return f"{value:.1e}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--engines", nargs="+", default=["keras"], choices=ENGINES)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument(
        "--no-maps", action="store_true", help="leave out attention maps, which take 9 GB at 2,048 tokens"
    )
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--trained", nargs="+", metavar="MODEL", help="installed models or folders")
    parser.add_argument("--text", type=Path, metavar="FILE")
    parser.add_argument("--texts", type=int, default=20)
    args = parser.parse_args()
    if args.trained and not args.text:
        parser.error("--trained needs --text FILE")
    columns = ("model", "engine", "tokens", *OUTPUTS, "decisions_equal", *(("largest_state",) if args.trained else ()))
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    rows = []
    if args.trained:
        texts = [line.strip() for line in args.text.read_text("utf-8").splitlines() if len(line) >= 200][: args.texts]
    for name in args.trained or args.models:
        measured = (
            compare_trained(name, texts, args.tokens)
            if args.trained
            else compare(name, args.tokens, args.engines, not args.no_maps)
        )
        for row in measured:
            rows.append(row)
            print("| " + " | ".join(format_figure(row.get(column)) for column in columns) + " |", flush=True)
        gc.collect()
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))
    compared = [name for name in OUTPUTS if name != "attentions"]
    tolerance = 1e-3 if args.trained else TOLERANCE
    good = all(row["decisions_equal"] and max(row.get(name, 0) for name in compared) <= tolerance for row in rows)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
