"""Which tensors a checkpoint holds: their canonical names and shapes, by arithmetic alone.

The canonical names and orientations are Hugging Face's for BERT, with the `bert.` prefix: matrices of dense
layers are [out, in]. The other architectures have the same names here; `bert_tf.architectures` says what their files
call them. H hidden size, V vocabulary.
"""

import re

from bert_tf.architectures import BERT
from bert_tf.architectures.architecture import rename
from bert_tf.parameters import parameter_spec

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
# Index buffers that older files store beside the weights.
_BUFFERS = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")


def tensor_shapes(config, heads=None):
    """Every tensor of a checkpoint with these heads.

    Args:
        config: BertConfig. heads: any of `HEADS`; None for all that the architecture may have.

    Returns: dict canonical name -> shape (tuple of int), in the order of a forward pass.
    """
    return {parameter.name: parameter.shape for parameter in parameter_spec(config, heads)}


def heads_present(names):
    """The heads of which these canonical names hold any tensor, as a frozenset."""
    names = [name for name in names if name]
    return frozenset(head for head, start in _HEAD_STARTS.items() if any(name.startswith(start) for name in names))


def is_task_tensor(name):
    """Whether a tensor of this name belongs to the head of a fine-tuned model."""
    return name.startswith(_TASK_STARTS)


def classifier_has_pooler(architecture):
    """Whether Transformers' classifier of sentences brings the pooler: it is pre-trained without (RoBERTa)."""
    return "pooler" in architecture.heads and "pooler" not in architecture.trained


def classifier_name(name):
    """What a classifier of such an architecture calls the tensors of the pooler and of our head on it."""
    return rename(name, _CLASSIFIER)


def canonical_name(stored, architecture=BERT):
    """The canonical name of a tensor in a Hugging Face file, or None for a buffer that is not a weight.

    Adds the model's prefix where a file was saved without it, and calls `gamma` and `beta` weight and bias.
    """
    if _BUFFERS.search(stored):
        return None
    name = architecture.own_name(stored)
    if classifier_has_pooler(architecture):
        name = rename(name, tuple((theirs, ours) for ours, theirs in _CLASSIFIER))
    name = re.sub(r"\bLayerNorm\.gamma\b", "LayerNorm.weight", name)
    return re.sub(r"\bLayerNorm\.beta\b", "LayerNorm.bias", name)
