"""Speed of batch work on a file of sentences: this project, Transformers, KerasHub and ONNX Runtime.

    python benchmarks/batch_predict.py FILE [--what words vectors classes] [--model bert-base-cased-embedded]
        [--batch 32] [--limit 512] [--onnx FILE ...] [--cache FOLDER] [--rounds 3] [--json FILE]

FILE has one sentence on each line (a TSV with a header: in its `sentence` column). "words": the middle word of each
becomes [MASK], and each library returns the five most probable words; "vectors": the mean of the last hidden states;
"classes": the most probable class, ours by the embedded sentiment model. Each library tokenises and runs with the same
batch size and model size, in float32 and in each reduced precision that it has. Transformers pads each batch, in the
file's order, to its longest sentence; KerasHub pads all to the longest of the file. Their models have random weights,
which take the same time. ONNX Runtime runs on Transformers' batches: for words the files of `--onnx`, such as those
that `cold_start.py --cache FOLDER` writes, else the encoder, as it exports it to `--cache` and quantizes it. Rounds are
interleaved; the table has medians. Needs requirements-bench.txt.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import inference_peers  # noqa: E402

TOP = 5
SENTIMENT = "sentiment-base-cased"


def main(arguments=None):
    options = _options(arguments)
    lines = read_sentences(options.file, options.limit)
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.cache or temporary)
        for what in options.what:
            sentences = [mask_middle_word(line) for line in lines] if what == "words" else lines
            results[what] = measure(what, sentences, folder, options)
            report(what, results[what], len(sentences), options)
    if options.json:
        figures = {"sentences": len(lines), "batch": options.batch, "seconds": results}
        Path(options.json).write_text(json.dumps(figures, indent=1))
    return 0


def measure(what, sentences, folder, options):
    """Seconds of each implementation in each round: dict of lists."""
    import bert_tf

    bert, calls = bert_tf.load(options.model), {}
    for precision in ("int8", "bfloat16", "float32"):
        calls[f"ours, {precision}"] = ours(what, options, precision)
    for precision in ("bfloat16", "float32"):
        calls[f"Transformers, {precision}"] = transformers_batches(what, bert, options.batch, precision)
        calls[f"KerasHub, {precision}"] = kerashub_predict(what, bert, sentences, options.batch, precision)
    if what == "words":
        onnx_files = [Path(path) for path in options.onnx]
    else:
        onnx_files = encoder_files(bert, folder)
    for path in onnx_files:
        calls[f"ONNX Runtime, {path.name}"] = onnx_batches(what, bert, path, options.batch)
    times = {name: [] for name in calls}
    for call in calls.values():
        call(sentences[: 2 * options.batch])
    for _ in range(options.rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            answers = call(sentences)
            times[name].append(time.perf_counter() - began)
            assert len(answers) == len(sentences), (name, len(answers))
    return times


def report(what, times, count, options):
    medians = {name: statistics.median(values) for name, values in times.items()}
    fastest = min(medians, key=lambda name: (not name.startswith("ours"), medians[name]))
    print(
        f"{what}: {count} sentences, batches of {options.batch}, {options.model}\n\n"
        f"| | seconds | sentences/s | {fastest} is faster by |"
    )
    print("|---|---|---|---|")
    for name, seconds in medians.items():
        print(f"| {name} | {seconds:.2f} | {count / seconds:.1f} | {seconds / medians[fastest]:.2f} |")
    print(flush=True)


def read_sentences(path, limit):
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    column = 0
    if "sentence" in lines[0].split("\t"):
        column = lines[0].split("\t").index("sentence")
        lines = lines[1:]
    return [line.split("\t")[column].strip() for line in lines if line.strip()][:limit]


def mask_middle_word(sentence):
    words = sentence.split()
    words[len(words) // 2] = "[MASK]"
    return " ".join(words)


def ours(what, options, precision):
    import bert_tf
    from bert_tf.inference.sentence_vectors import sentence_vectors

    if what == "classes":
        task = bert_tf.load(SENTIMENT, precision=precision).task
        return lambda lines: task.predict(lines, options.batch)
    bert = bert_tf.load(options.model, precision=precision)
    if what == "vectors":
        return lambda lines: list(sentence_vectors(bert, lines, "mean", batch_size=options.batch))
    return lambda lines: [
        answer.masks[0].predictions
        for answer in bert.predict_many(((line, None, ()) for line in lines), batch_size=options.batch, top_k=TOP)
    ]


def transformers_batches(what, bert, batch, precision):
    import torch
    import transformers

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    name = {"words": "BertForMaskedLM", "vectors": "BertModel", "classes": "BertForSequenceClassification"}[what]
    config = transformers.BertConfig(**bert.config.to_hf_dict())
    model = getattr(transformers, name)(config).eval().to(getattr(torch, precision))

    def values_of(inputs):
        with torch.inference_mode():
            return model(**inputs)[0].float()

    return padded_batches(what, bert, batch, values_of)


def onnx_batches(what, bert, path, batch):
    import torch

    session = inference_peers.onnx_session(path)
    names = dict(zip(("input_ids", "token_type_ids", "attention_mask"), inference_peers.NAMES))
    known = {one.name for one in session.get_inputs()}

    def values_of(inputs):
        arrays = {name if name in known else names[name]: value.numpy() for name, value in inputs.items()}
        hidden_states, *rest = session.run(None, arrays)
        return torch.from_numpy(rest[0] if what == "classes" else hidden_states)

    return padded_batches(what, bert, batch, values_of)


def encoder_files(bert, folder):
    """The encoder without a head as ONNX files in float32 and in eight bits; its pooled output stands for classes."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = inference_peers.onnx_file(bert.config, folder, False)
    return [plain, inference_peers.quantized_file(plain)]


def padded_batches(what, bert, batch, values_of):
    """The answers by batches of Transformers' tokenizer, each padded to its longest sentence.

    `values_of` gives the logits of all tokens, the last hidden states or the logits of the classes.
    """
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast(str(bert.path / "vocab.txt"), do_lower_case=bert.tokenizer.lower_case)

    def answers_of(inputs, values):
        if what == "classes":
            return values.argmax(-1).tolist()
        if what == "vectors":
            real = inputs["attention_mask"].unsqueeze(-1)
            return list(((values * real).sum(1) / real.sum(1)).numpy())
        rows, positions = (inputs["input_ids"] == tokenizer.mask_token_id).nonzero(as_tuple=True)
        best = values[rows, positions].softmax(-1).topk(TOP)
        return [tokenizer.convert_ids_to_tokens(one.tolist()) for one in best.indices]

    def run(lines):
        answers = []
        for start in range(0, len(lines), batch):
            inputs = tokenizer(
                lines[start : start + batch],
                padding=True,
                truncation=True,
                max_length=bert.max_length,
                return_tensors="pt",
            )
            answers += answers_of(inputs, values_of(inputs))
        return answers

    return run


def kerashub_predict(what, bert, sentences, batch, precision):
    import keras_hub
    import tensorflow as tf

    config = bert.config
    tokenizer = keras_hub.models.BertTokenizer(
        vocabulary=list(bert.tokenizer.vocab),
        lowercase=bert.tokenizer.lower_case,
        special_tokens_in_strings=True,
    )
    longest = 2 + max(len(one) for one in tokenizer(tf.constant(sentences)))
    packer = keras_hub.layers.MultiSegmentPacker(
        sequence_length=longest,
        start_value=tokenizer.cls_token_id,
        end_value=tokenizer.sep_token_id,
        pad_value=tokenizer.pad_token_id,
    )
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        dtype=precision,
    )
    model = {
        "words": lambda: keras_hub.models.BertMaskedLM(backbone, preprocessor=None),
        "vectors": lambda: backbone,
        "classes": lambda: keras_hub.models.BertTextClassifier(backbone, num_classes=2, preprocessor=None),
    }[what]()

    def run(lines):
        ids, segments = packer((tokenizer(tf.constant(lines)),))
        inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": ids != tokenizer.pad_token_id}
        if what == "words":
            inputs["mask_positions"] = tf.argmax(ids == tokenizer.mask_token_id, axis=1, output_type=tf.int32)[:, None]
        values = model.predict(tf.data.Dataset.from_tensor_slices(inputs).batch(batch), verbose=0)
        if what == "vectors":
            real = inputs["padding_mask"].numpy()[:, :, None]
            return list((values["sequence_output"] * real).sum(axis=1) / real.sum(axis=1))
        if what == "classes":
            return values.argmax(axis=-1)
        best = np.argsort(-values[:, 0], axis=-1)[:, :TOP]
        return [[bert.tokenizer.vocab[token] for token in row] for row in best]

    return run


def _options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--what", nargs="+", default=["words"], choices=["words", "vectors", "classes"])
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--limit", type=int, default=512, help="number of sentences to read")
    parser.add_argument("--onnx", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--cache", help="folder for exported graphs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
