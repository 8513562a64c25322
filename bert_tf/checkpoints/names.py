"""Which tensors a BERT checkpoint holds: their canonical names and shapes, by arithmetic alone.

The canonical names and orientations are Hugging Face's, with the `bert.` prefix: matrices of dense layers are
[out, in]. H hidden size, V vocabulary.
"""

import re

HEADS = ("pooler", "mlm", "nsp")

_HEAD_STARTS = {"pooler": "bert.pooler.", "mlm": "cls.predictions.", "nsp": "cls.seq_relationship."}
# Of a fine-tuned model's head; `finetune` reads them.
_TASK_STARTS = ("classifier.", "qa_outputs.", "attention_pooling.", "crf.")
_EMBEDDING_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")
_BARE_STARTS = ("embeddings.", "encoder.", "pooler.")
# Index buffers that older files store beside the weights.
_BUFFERS = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")


def tensor_shapes(config, heads=HEADS):
    """Every tensor of a checkpoint with these heads.

    Args:
        config: BertConfig. heads: any of `"pooler"`, `"mlm"`, `"nsp"`.

    Returns: dict canonical name -> shape (tuple of int), in the order of a forward pass.
    """
    width, inner = config.hidden_size, config.intermediate_size
    shapes = {}

    def dense(name, size_out, size_in):
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (size_out, size_in), (size_out,)

    def norm(name):
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (width,)

    rows = (config.vocab_size, config.max_position_embeddings, config.type_vocab_size)
    for table, count in zip(_EMBEDDING_TABLES, rows, strict=True):
        shapes[f"bert.embeddings.{table}.weight"] = (count, width)
    norm("bert.embeddings.LayerNorm")
    for index in range(config.num_hidden_layers):
        layer = f"bert.encoder.layer.{index}"
        for part in ("query", "key", "value"):
            dense(f"{layer}.attention.self.{part}", width, width)
        dense(f"{layer}.attention.output.dense", width, width)
        norm(f"{layer}.attention.output.LayerNorm")
        dense(f"{layer}.intermediate.dense", inner, width)
        dense(f"{layer}.output.dense", width, inner)
        norm(f"{layer}.output.LayerNorm")
    if "pooler" in heads:
        dense("bert.pooler.dense", width, width)
    if "mlm" in heads:
        dense("cls.predictions.transform.dense", width, width)
        norm("cls.predictions.transform.LayerNorm")
        shapes["cls.predictions.bias"] = (config.vocab_size,)
    if "nsp" in heads:
        dense("cls.seq_relationship", 2, width)
    return shapes


def heads_among(names):
    """The heads of which these canonical names hold any tensor, as a frozenset."""
    names = [name for name in names if name]
    return frozenset(head for head, start in _HEAD_STARTS.items()
                     if any(name.startswith(start) for name in names))


def is_task_tensor(name):
    """Whether a tensor of this name belongs to the head of a fine-tuned model."""
    return name.startswith(_TASK_STARTS)


def canonical_name(stored):
    """The canonical name of a tensor in a Hugging Face file, or None for a buffer that is not a weight.

    Adds the `bert.` prefix where a file was saved without it, and calls `gamma` and `beta` weight and bias.
    """
    if _BUFFERS.search(stored):
        return None
    name = f"bert.{stored}" if stored.startswith(_BARE_STARTS) else stored
    name = re.sub(r"\bLayerNorm\.gamma\b", "LayerNorm.weight", name)
    return re.sub(r"\bLayerNorm\.beta\b", "LayerNorm.bias", name)


def parameter_count(config, heads=HEADS):
    """Number of weights of a model with these heads (the tied decoder counted once)."""
    total = 0
    for shape in tensor_shapes(config, heads).values():
        total += shape[0] * (shape[1] if len(shape) == 2 else 1)
    return total
