"""Agreement of the reduced-precision mode with float32: the first predictions of masked words.

    python benchmarks/precision.py FILE [--model bert-base-cased-embedded] [--tokens 128] [--sequences 40]
    [--json FILE]

FILE is plain text. Sequences of it have 15% of their tokens replaced by [MASK] (fixed seed); the first
prediction of every mask is compared between the two precisions, and with the original word.
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
    rough = Runtime(bert.model, "bfloat16")
    agree, right_exact, right_rough, distances = [], [], [], []
    for batch, labels in batches(bert.tokenizer, options):
        exact_logits = bert.runtime.run(batch, ("mlm_logits",))["mlm_logits"]
        rough_logits = rough.run(batch, ("mlm_logits",))["mlm_logits"]
        exact, near = exact_logits.argmax(-1), rough_logits.argmax(-1)
        agree.append(exact == near)
        right_exact.append(exact == labels)
        right_rough.append(near == labels)
        distances.append(_total_variation(exact_logits, rough_logits))
    found = {
        "model": options.model,
        "masks": int(np.size(agree)),
        "top1_agreement": float(np.mean(agree)),
        "top1_float32": float(np.mean(right_exact)),
        "top1_bfloat16": float(np.mean(right_rough)),
        "mean_total_variation": float(np.mean(distances)),
    }
    print(json.dumps(found, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1))
    return 0


def batches(tokenizer, options, rows=8):
    """Batches of `rows` full sequences, [MASK] at the same number of places in each, and the ids that stood
    there."""
    inner, random = options.tokens - 2, np.random.default_rng(0)
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
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--sequences", type=int, default=40)
    parser.add_argument("--json")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
