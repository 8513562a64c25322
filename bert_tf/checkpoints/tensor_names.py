"""Which tensors a checkpoint holds: their canonical names and shapes, by arithmetic alone.

The canonical names and orientations are Hugging Face's for BERT, with the `bert.` prefix: matrices of dense
layers are [out, in]. The other family members have the same names here; `bert_tf.architectures` says what their files
call them. H hidden size, V vocabulary.
"""

import re

from bert_tf.architectures import BERT
from bert_tf.architectures.architecture import rename

HEADS = ("pooler", "mlm", "nsp", "sop", "replaced")

_HEAD_STARTS = {
    "pooler": "bert.pooler.",
    "mlm": "cls.predictions.",
    "nsp": "cls.seq_relationship.",
    "sop": "sop_classifier.",
    "replaced": "discriminator_predictions.",
}
# Of a fine-tuned model's head; `finetune` reads them.
_TASK_STARTS = ("classifier.", "qa_outputs.", "attention_pooling.", "crf.", "pre_classifier.", "sequence_summary.")
# Ours and Transformers' names where a classifier has the pooler within.
_CLASSIFIER = (("bert.pooler.dense", "classifier.dense"), ("classifier", "classifier.out_proj"))
_EMBEDDING_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")
# Index buffers that older files store beside the weights.
_BUFFERS = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")


def tensor_shapes(config, heads=None):
    """Every tensor of a checkpoint with these heads.

    Args:
        config: BertConfig. heads: any of `HEADS`; None for all that the family member may have.

    Returns: dict canonical name -> shape (tuple of int), in the order of a forward pass.
    """
    heads = config.member.heads if heads is None else heads
    width, inner, narrow = config.hidden_size, config.intermediate_size, config.embedding_width
    shapes = {}

    def dense(name, size_out, size_in):
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (size_out, size_in), (size_out,)

    def norm(name, size=width):
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (size,)

    rows = (config.vocab_size, config.max_position_embeddings, config.type_vocab_size)
    for table, count in zip(_EMBEDDING_TABLES, rows, strict=True):
        if count:
            shapes[f"bert.embeddings.{table}.weight"] = (count, narrow)
    norm("bert.embeddings.LayerNorm", narrow)
    if config.has_embedding_projection:
        dense("bert.embeddings_project", width, narrow)
    for group in dict.fromkeys(config.layer_groups):
        for stack in config.stack_names:
            layer, own, wide = f"bert.encoder.layer.{group}{stack}", width // config.stacks, inner // config.stacks
            for part in ("query", "key", "value"):
                dense(f"{layer}.attention.self.{part}", own, own)
            dense(f"{layer}.attention.output.dense", own, own)
            norm(f"{layer}.attention.output.LayerNorm", own)
            dense(f"{layer}.intermediate.dense", wide, own)
            dense(f"{layer}.output.dense", own, wide)
            norm(f"{layer}.output.LayerNorm", own)
    if "pooler" in heads:
        dense("bert.pooler.dense", width, width)
    if "mlm" in heads:
        dense("cls.predictions.transform.dense", narrow, width)
        norm("cls.predictions.transform.LayerNorm", narrow)
        shapes["cls.predictions.bias"] = (config.vocab_size,)
    if "nsp" in heads:
        dense("cls.seq_relationship", 2, width)
    if "sop" in heads:
        dense("sop_classifier.classifier", 2, width)
    if "replaced" in heads:
        dense("discriminator_predictions.dense", width, width)
        dense("discriminator_predictions.dense_prediction", 1, width)
    return shapes


def heads_present(names):
    """The heads of which these canonical names hold any tensor, as a frozenset."""
    names = [name for name in names if name]
    return frozenset(head for head, start in _HEAD_STARTS.items() if any(name.startswith(start) for name in names))


def is_task_tensor(name):
    """Whether a tensor of this name belongs to the head of a fine-tuned model."""
    return name.startswith(_TASK_STARTS)


def classifier_has_pooler(member):
    """Whether Transformers' classifier of sentences brings the pooler: the member is pre-trained without (RoBERTa)."""
    return "pooler" in member.heads and "pooler" not in member.trained


def classifier_name(name):
    """What a classifier of such a member calls the tensors of the pooler and of our head on it."""
    return rename(name, _CLASSIFIER)


def canonical_name(stored, member=BERT):
    """The canonical name of a tensor in a Hugging Face file, or None for a buffer that is not a weight.

    Adds the model's prefix where a file was saved without it, and calls `gamma` and `beta` weight and bias.
    """
    if _BUFFERS.search(stored):
        return None
    name = member.own_name(stored)
    if classifier_has_pooler(member):
        name = rename(name, tuple((theirs, ours) for ours, theirs in _CLASSIFIER))
    name = re.sub(r"\bLayerNorm\.gamma\b", "LayerNorm.weight", name)
    return re.sub(r"\bLayerNorm\.beta\b", "LayerNorm.bias", name)
