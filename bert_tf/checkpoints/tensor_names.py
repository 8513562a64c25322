"""The canonical names and shapes of the tensors in a checkpoint, computed from the settings.

The canonical names and orientations are those of Hugging Face's BERT, with the `bert.` prefix: matrices of dense
layers are [out, in]. The other architectures use the same canonical names; `bert_tf.architectures` has the names in
their files.
"""

import re
from collections.abc import Collection, Iterable

from bert_tf.architectures import BERT
from bert_tf.architectures.architecture import Architecture, rename
from bert_tf.config import BertConfig
from bert_tf.parameters import parameter_spec

_HEAD_STARTS = {
    "pooler": "bert.pooler.",
    "mlm": "cls.predictions.",
    "nsp": "cls.seq_relationship.",
    "sop": "sop_classifier.",
    "replaced": "discriminator_predictions.",
}
# Prefixes of the head of a fine-tuned model, which `finetune` reads.
_TASK_STARTS = (
    "classifier.",
    "qa_outputs.",
    "attention_pooling.",
    "crf.",
    "pre_classifier.",
    "sequence_summary.",
    "head.",
    "pooler.",
)
# Canonical names and Transformers' names, if Transformers' classifier contains the pooler.
_CLASSIFIER = (("bert.pooler.dense", "classifier.dense"), ("classifier", "classifier.out_proj"))
# Index buffers that older files store beside the weights.
_BUFFERS = re.compile(r"(^|\.)embeddings\.(position_ids|token_type_ids)$")


def tensor_shapes(config: BertConfig, heads: Collection[str] | None = None) -> dict[str, tuple[int, ...]]:
    """Return the tensors of a checkpoint with these heads.

    Args:
        config: `BertConfig`. The settings.
        heads: collection of str or None. Some of `bert_tf.model_outputs.ALL_HEADS`; None for all heads that the
            architecture can have.

    Returns:
        Dict of canonical name -> shape, in the order of a forward pass.
    """
    return {parameter.name: parameter.shape for parameter in parameter_spec(config, heads)}


def heads_present(names: Iterable[str | None]) -> frozenset[str]:
    """Return the heads of which at least one tensor is among these canonical names; None is ignored."""
    tensors = [name for name in names if name]
    return frozenset(head for head, start in _HEAD_STARTS.items() if any(name.startswith(start) for name in tensors))


def is_task_tensor(name: str) -> bool:
    """Return whether a tensor of this name belongs to the head of a fine-tuned model."""
    return name.startswith(_TASK_STARTS)


def is_of_another_head(name: str) -> bool:
    """Return whether a tensor of this canonical name belongs to a head that this project does not know.

    Such as ColBERT's projection: the encoder and the known heads compute the same without it. A name with slashes is an
    unknown one in a TensorFlow checkpoint or a KerasHub preset, and may be a part of the encoder.
    """
    is_known = name.startswith(("bert.", *_HEAD_STARTS.values())) or is_task_tensor(name)
    return not is_known and "/" not in name


def task_names(names: Iterable[str | None], architecture: Architecture) -> dict[str, str]:
    """Return {canonical name of the MLM head: name of a task's head} for the tensors that the names alone mistake.

    In ModernBERT's files the MLM head and the heads of tasks begin with layers of the same names. Only the MLM head has
    an output bias or table.

    Args:
        names: iterable of str. All canonical names of one file or folder; None is ignored.
        architecture: `Architecture`. The architecture of the model.
    """
    start = _HEAD_STARTS["mlm"]
    of_head = [name for name in names if name and name.startswith(start)]
    if not architecture.prediction_head or any(
        name.startswith((f"{start}bias", f"{start}decoder")) for name in of_head
    ):
        return {}
    return {name: architecture.stored_name(name) for name in of_head}


def classifier_has_pooler(architecture: Architecture) -> bool:
    """Return whether Transformers' sentence classifier contains the pooler.

    It does if the architecture has a pooler and its pre-training does not train it (RoBERTa).
    """
    return "pooler" in architecture.heads and "pooler" not in architecture.trained


def classifier_name(name: str) -> str:
    """Return the name of a tensor of the pooler or classifier in such a sentence classifier of Transformers."""
    return rename(name, _CLASSIFIER)


def unread_pooler(stored: Collection[str], architecture: Architecture) -> dict[str, str]:
    """Return {name in the file: that name with the model's prefix} for the tensors of a pooler that no head reads.

    A sentence classifier that contains a pooler of its own does not read the encoder's, which many files hold too.
    """
    if not classifier_has_pooler(architecture) or "classifier.dense.weight" not in stored:
        return {}
    own_names = {name: architecture.own_name(name) for name in stored}
    start = _HEAD_STARTS["pooler"]
    return {name: architecture.stored_name(own) for name, own in own_names.items() if own.startswith(start)}


def canonical_name(stored: str, architecture: Architecture = BERT) -> str | None:
    """Return the canonical name of a tensor in a Hugging Face file, or None for a buffer that is not a weight.

    Adds the model's prefix if the file was saved without it, and replaces `gamma` and `beta` by weight and bias.
    """
    if _BUFFERS.search(stored):
        return None
    name = architecture.own_name(stored)
    if classifier_has_pooler(architecture):
        name = rename(name, tuple((theirs, ours) for ours, theirs in _CLASSIFIER))
    name = re.sub(r"\bLayerNorm\.gamma\b", "LayerNorm.weight", name)
    return re.sub(r"\bLayerNorm\.beta\b", "LayerNorm.bias", name)
