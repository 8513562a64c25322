"""Agreement of the reduced precisions with float32: predictions, next sentence, attention and hidden states.

    python benchmarks/precision.py FILE [--model bert-base-cased-embedded] [--precisions bfloat16 int8]
    [--onnx FILE] [--tokens 128] [--rows 8] [--sequences 40] [--json FILE]

FILE is plain text; `--model` is any model or model folder. Sequences of the text have 15% of their tokens replaced by
[MASK] (fixed seed). The first prediction of every mask is compared with that in float32 and with the original word.
`--onnx` compares also the predictions of ONNX Runtime with a file of the same model, such as the one in eight bits that
`cold_start.py --cache FOLDER` writes.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def main(arguments=None):
    options = _options(arguments)
    import bert_tf
    from bert_tf.runtime import Runtime

    bert = bert_tf.load(options.model)
    pairs = "nsp" in bert.heads
    outputs = ("mlm_logits", "hidden_states", "attentions", *(("nsp_logits",) if pairs else ()))
    runtimes = {precision: Runtime(bert.weights, precision) for precision in options.precisions}
    if options.onnx:
        runtimes["ONNX Runtime"] = _OnnxModel(options.onnx)
    values = {name: [] for name in runtimes}
    for batch, labels in batches(bert.tokenizer, options):
        exact = bert.runtime.run(batch, outputs)
        for name, runtime in runtimes.items():
            values[name].append(_compared(exact, runtime.run(batch, outputs), labels))
    results = {"model": options.model, "masks": int(sum(row["masks"] for row in next(iter(values.values()))))}
    for runtime_name, rows in values.items():
        results[runtime_name] = {
            name: round(float(np.mean([row[name] for row in rows])), 5) for name in rows[0] if name != "masks"
        }
    print(json.dumps(results, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))
    return 0


class _OnnxModel:
    """An ONNX file with Transformers' inputs and, first, the logits of all tokens; `run` gives those of the masks."""

    def __init__(self, path):
        import onnxruntime

        self._session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def run(self, batch, outputs):
        names = {"input_ids": "token_ids", "token_type_ids": "segment_ids", "attention_mask": "padding_mask"}
        logits = self._session.run(None, {theirs: batch[ours].astype(np.int64) for theirs, ours in names.items()})[0]
        return {"mlm_logits": np.take_along_axis(logits, batch["mask_positions"][..., None], axis=1)}


def _compared(exact, rough, labels):
    """The figures of one batch, of the outputs that `rough` has.

    `top1_*` are shares of the masks; the others are mean absolute differences.
    """
    first, second = exact["mlm_logits"].argmax(-1), rough["mlm_logits"].argmax(-1)
    figures = {
        "masks": labels.size,
        "top1_agreement": np.mean(first == second),
        "top1_float32": np.mean(first == labels),
        "top1": np.mean(second == labels),
        "total_variation": _total_variation(exact["mlm_logits"], rough["mlm_logits"]),
    }
    if "attentions" in rough:
        figures["attention_weight"] = _mean_difference(exact["attentions"], rough["attentions"])
        figures["last_hidden_state"] = _mean_difference(exact["hidden_states"][-1], rough["hidden_states"][-1])
    if "nsp_logits" in rough:
        answers = [_softmax(values["nsp_logits"]) for values in (exact, rough)]
        figures["nsp_agreement"] = np.mean(answers[0].argmax(-1) == answers[1].argmax(-1))
        figures["nsp_probability"] = _mean_difference(*answers)
    return figures


def _mean_difference(one, other):
    return np.abs(np.asarray(one) - np.asarray(other)).mean()


def batches(tokenizer, options):
    """Batches of `options.rows` full sequences, [MASK] at the same number of places in each, and the ids that stood
    there."""
    inner, rows, random = options.tokens - 2, options.rows, np.random.default_rng(0)
    lines = [line for line in Path(options.file).read_text(encoding="utf-8").splitlines() if len(line) > 80]
    ids = np.concatenate([tokenizer.tokenize(line).ids for line in lines[: 4 * options.sequences]])
    count = min(options.sequences, len(ids) // inner) // rows * rows
    sequences = ids[: count * inner].reshape(-1, inner).astype(np.int32)
    for start in range(0, count, rows):
        tokens = np.pad(sequences[start : start + rows], ((0, 0), (1, 1)))
        tokens[:, 0], tokens[:, -1] = tokenizer.cls_id, tokenizer.sep_id
        places = np.stack([random.choice(inner, int(0.15 * inner), replace=False) + 1 for _ in tokens]).astype(np.int32)
        labels = np.take_along_axis(tokens, places, axis=1)
        np.put_along_axis(tokens, places, tokenizer.mask_id, axis=1)
        yield (
            {
                "token_ids": tokens,
                "segment_ids": np.zeros_like(tokens),
                "padding_mask": np.ones_like(tokens),
                "mask_positions": places,
            },
            labels,
        )


def _total_variation(first, second):
    return np.abs(_softmax(first) - _softmax(second)).sum(-1).mean() / 2


def _softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--model", default="bert-base-cased-embedded")
    parser.add_argument("--precisions", nargs="+", default=["bfloat16", "int8"])
    parser.add_argument("--onnx", metavar="FILE")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rows", type=int, default=8, help="sequences in one forward pass")
    parser.add_argument("--sequences", type=int, default=40)
    parser.add_argument("--json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
