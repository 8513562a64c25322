"""Folders that hold only what differs from another model: a task's head and the layers that were trained.

Such a folder's task.json names the other model as "base_model". Its settings are the folder's own; every
tensor that it lacks, and the vocabulary if it has none, are the other model's.
"""

import hashlib
from pathlib import Path

from bert_tf.checkpoints.errors import CheckpointError
from bert_tf.checkpoints.files import read_json
from bert_tf.checkpoints.library import find
from bert_tf.checkpoints.names import canonical_name, is_task_tensor, tensor_shapes
from bert_tf.checkpoints.safetensors_folder import open_tensors
from bert_tf.config import BertConfig
from bert_tf.text import Tokenizer


def base_model(folder):
    """The name of the model that the folder's tensors lie over, or None for a folder that is whole."""
    path = Path(folder) / "task.json"
    return read_json(path).get("base_model") if path.is_file() else None


def open_delta(folder, open_folder):
    """As `reading.read` opens a whole folder, the two joined.

    Args:
        folder: Path of the folder. open_folder: opens the other one.

    Returns: (BertConfig, Tokenizer, dict canonical name -> StoredTensor).

    Raises:
        CheckpointError: the other model is not here, is itself such a folder, or is not the one that was
            trained on.
    """
    values = read_json(folder / "task.json")
    base = find(values["base_model"])
    if base_model(base):
        raise CheckpointError(
            f"{folder} lies over {base}, which itself lies over another model; only one "
            "model under a folder is read."
        )
    config = BertConfig.from_json(folder / "config.json")
    _, tokenizer, tensors = open_folder(base)
    if values.get("base_sign") not in (None, signature(tensors)):
        raise CheckpointError(
            f"{folder} was trained on another {values['base_model']} than {base}; get the one "
            "it was made from."
        )
    own = {canonical_name(name, config.member): tensor for name, tensor in open_tensors(folder).items()}
    wanted = set(tensor_shapes(config, ()))
    # The other model's pre-training heads were not trained along; the pooler stays where the folder has none.
    kept = {
        name: tensor
        for name, tensor in tensors.items()
        if not is_task_tensor(name) and (name in wanted or name.startswith("bert.pooler."))
    }
    tokenizer = Tokenizer.from_folder(folder) if (folder / "vocab.txt").is_file() else tokenizer
    return config, tokenizer, {**kept, **own}


def signature(tensors):
    """A short text that is another one for nearly every other model.

    Args:
        tensors: dict canonical name -> StoredTensor.
    """
    vectors = sorted(name for name, tensor in tensors.items() if name.endswith("output.LayerNorm.weight"))
    if not vectors:
        return None
    digest = hashlib.sha256()
    for name in (vectors[0], vectors[-1]):
        digest.update(tensors[name].read().astype("<f4").tobytes())
    return digest.hexdigest()[:16]
