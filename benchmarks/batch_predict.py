"""Speed of batch prediction for a file of sentences: this project, Transformers, KerasHub and ONNX Runtime.

    python benchmarks/batch_predict.py FILE [--model bert-base-cased-embedded] [--batch 32] [--limit 512]
        [--onnx FILE] [--rounds 3] [--json FILE]

FILE has one sentence on each line (a TSV with a header: in its `sentence` column). The middle word of each becomes
[MASK]; each library tokenises, runs and returns the five most probable words, with the same batch size and model size.
Transformers pads each batch, in the file's order, to its longest sentence; KerasHub pads all to the longest of the
file. Their models have random weights, which take the same time. ONNX Runtime runs the files of `--onnx`, such as those
that `cold_start.py --cache FOLDER` writes, on Transformers' batches. Rounds are interleaved; the table has medians.
Needs requirements-bench.txt.
"""

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
TOP = 5


def main(arguments=None):
    options = _options(arguments)
    import bert_tf

    bert = bert_tf.load(options.model)
    sentences = [mask_middle_word(line) for line in read_sentences(options.file, options.limit)]
    sides = {"ours": ours, "Transformers": transformers_batches, "KerasHub": kerashub_predict}
    calls = {name: make(bert, sentences, options.batch) for name, make in sides.items()}
    calls["ours, int8"] = ours(bert_tf.load(options.model, precision="int8"), sentences, options.batch)
    for path in options.onnx:
        calls[f"ONNX Runtime, {Path(path).name}"] = onnx_batches(bert, path, options.batch)
    times = {name: [] for name in calls}
    for call in calls.values():
        call(sentences[: 2 * options.batch])
    for _ in range(options.rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            answers = call(sentences)
            times[name].append(time.perf_counter() - began)
            assert len(answers) == len(sentences), (name, len(answers))
    report(times, len(sentences), options)
    return 0


def report(times, count, options):
    medians = {name: statistics.median(values) for name, values in times.items()}
    print(
        f"{count} sentences, batches of {options.batch}, {options.model}\n\n"
        "| | seconds | sentences/s | ours is faster by |"
    )
    print("|---|---|---|---|")
    for name, seconds in medians.items():
        print(f"| {name} | {seconds:.2f} | {count / seconds:.1f} | {seconds / medians['ours']:.2f} |")
    if options.json:
        Path(options.json).write_text(
            json.dumps({"sentences": count, "batch": options.batch, "seconds": times}, indent=1)
        )


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


def ours(bert, _, batch):
    return lambda lines: [
        answer.masks[0].predictions
        for answer in bert.predict_many(((line, None, ()) for line in lines), batch_size=batch, top_k=TOP)
    ]


def transformers_batches(bert, _, batch):
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = BertForMaskedLM(BertConfig(**bert.config.to_hf_dict())).eval()

    def logits_of(inputs):
        with torch.inference_mode():
            return model(**inputs).logits

    return padded_batches(bert, batch, logits_of)


def onnx_batches(bert, path, batch):
    import onnxruntime
    import torch

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def logits_of(inputs):
        return torch.from_numpy(session.run(None, {name: value.numpy() for name, value in inputs.items()})[0])

    return padded_batches(bert, batch, logits_of)


def padded_batches(bert, batch, logits_of):
    """The answers by batches of Transformers' tokenizer, each padded to its longest sentence.

    `logits_of` gives the logits of all tokens.
    """
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast(str(bert.path / "vocab.txt"), do_lower_case=bert.tokenizer.lower_case)

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
            logits = logits_of(inputs)
            rows, positions = (inputs["input_ids"] == tokenizer.mask_token_id).nonzero(as_tuple=True)
            best = logits[rows, positions].softmax(-1).topk(TOP)
            answers += [tokenizer.convert_ids_to_tokens(one.tolist()) for one in best.indices]
        return answers

    return run


def kerashub_predict(bert, sentences, batch):
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
    )
    model = keras_hub.models.BertMaskedLM(backbone, preprocessor=None)

    def run(lines):
        ids, segments = packer((tokenizer(tf.constant(lines)),))
        positions = tf.argmax(ids == tokenizer.mask_token_id, axis=1, output_type=tf.int32)[:, None]
        inputs = {
            "token_ids": ids,
            "segment_ids": segments,
            "padding_mask": ids != tokenizer.pad_token_id,
            "mask_positions": positions,
        }
        probabilities = model.predict(tf.data.Dataset.from_tensor_slices(inputs).batch(batch), verbose=0)
        best = np.argsort(-probabilities[:, 0], axis=-1)[:, :TOP]
        return [[bert.tokenizer.vocab[token] for token in row] for row in best]

    return run


def _options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--limit", type=int, default=512, help="number of sentences to read")
    parser.add_argument("--onnx", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
