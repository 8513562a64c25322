"""Parity with Transformers at true size: random weights, saved by Transformers, read and run here.

    python benchmarks/parity.py [--sizes base large] [--tokens 128] [--json FILE]

Compares every hidden state, every attention map, the pooled output, the MLM logits and the NSP logits at the
real positions of a padded batch, and prints the largest absolute difference of each, as a Markdown table.
Exit code 1 if a hidden state or logit differs by more than 1e-4, or an argmax anywhere.
"""

import argparse
import gc
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

TOLERANCE = 1e-4
OUTPUTS = ("embeddings_sum", "hidden_states", "attentions", "pooled_output", "mlm_logits_all", "nsp_logits")


def make_batch(vocab_size, tokens):
    rng = np.random.default_rng(0)
    ids = rng.integers(1000, vocab_size, (2, tokens))
    padding = np.ones_like(ids)
    padding[1, tokens * 3 // 4:] = 0
    segments = np.zeros_like(ids)
    segments[:, tokens // 2:] = 1
    return {"token_ids": ids * padding, "segment_ids": segments * padding, "padding_mask": padding}


def run_transformers(config, batch, folder):
    """Saves a random model to the folder. Returns: dict of arrays under this project's names."""
    import torch
    from transformers import BertConfig as TheirConfig
    from transformers import BertForPreTraining

    torch.manual_seed(0)
    model = BertForPreTraining(TheirConfig(**config.to_hf_dict(), attn_implementation="eager")).eval()
    model.save_pretrained(folder)
    ids, segments, mask = (torch.tensor(batch[name]) for name in ("token_ids", "segment_ids", "padding_mask"))
    with torch.no_grad():
        base = model.bert(input_ids=ids, token_type_ids=segments, attention_mask=mask,
                          output_hidden_states=True, output_attentions=True)
        mlm, nsp = model.cls(base.last_hidden_state, base.pooler_output)
        tables = model.bert.embeddings
        total = (tables.word_embeddings(ids) + tables.token_type_embeddings(segments)
                 + tables.position_embeddings(torch.arange(ids.shape[1])))
    return {"embeddings_sum": total.numpy(), "hidden_states": [x.numpy() for x in base.hidden_states],
            "attentions": [x.numpy() for x in base.attentions], "pooled_output": base.pooler_output.numpy(),
            "mlm_logits_all": mlm.numpy(), "nsp_logits": nsp.numpy()}


def run_ours(folder, batch):
    from bert_tf import checkpoints
    from bert_tf.models import view

    _, _, model = checkpoints.read(folder)
    inputs = {name: array.astype("int32") for name, array in batch.items()}
    found = view(model, OUTPUTS)(inputs)
    return {name: [np.asarray(x) for x in value] if isinstance(value, (list, tuple)) else np.asarray(value)
            for name, value in found.items()}


def difference(name, ours, theirs, real):
    """Largest absolute difference at the real positions."""
    if isinstance(theirs, list):
        return max(difference(name, a, b, real) for a, b in zip(ours, theirs, strict=True))
    if name == "attentions":
        ours, theirs = ours.swapaxes(1, 2), theirs.swapaxes(1, 2)
    if theirs.shape[:2] == real.shape:
        ours, theirs = ours[real], theirs[real]
    return float(np.abs(ours - theirs).max())


def compare(size, tokens):
    from bert_tf.config import BertConfig

    config = BertConfig.named(size)
    batch = make_batch(config.vocab_size, tokens)
    real = batch["padding_mask"].astype(bool)
    with tempfile.TemporaryDirectory() as folder:
        theirs = run_transformers(config, batch, folder)
        gc.collect()
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(config.vocab_size - 5))]
        (Path(folder) / "vocab.txt").write_text("\n".join(words) + "\n")
        ours = run_ours(folder, batch)
    row = {"size": size, "tokens": tokens, **{name: difference(name, ours[name], theirs[name], real)
                                              for name in OUTPUTS}}
    row["argmax_equal"] = all(bool((ours[name].argmax(-1) == theirs[name].argmax(-1))[where].all())
                              for name, where in (("mlm_logits_all", real), ("nsp_logits", ...)))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["base", "large"])
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    columns = ("size", "tokens", *OUTPUTS, "argmax_equal")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    rows = []
    for size in args.sizes:
        row = compare(size, args.tokens)
        rows.append(row)
        print("| " + " | ".join(f"{row[c]:.1e}" if isinstance(row[c], float) else str(row[c]) for c in columns) + " |",
              flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))
    good = all(row["argmax_equal"] and max(row[n] for n in OUTPUTS if n != "attentions") <= TOLERANCE for row in rows)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
