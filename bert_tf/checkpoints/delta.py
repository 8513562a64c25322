"""Delta folders: they store only the tensors that differ from a base model, such as a task head or trained layers, or
the low-rank updates of matrices (`lora_tensors`).

The folder's task.json (base.json if there is no task) names the base model as "base_model". The folder has its own
settings, with its own number of layers. A tensor that the folder does not hold is read from the base model; so is the
vocabulary if the folder has none.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
from bert_tf.checkpoints.library import find
from bert_tf.checkpoints.lora_tensors import is_lora, merged
from bert_tf.checkpoints.model_checksums import (
    REFERENCE_FILES,
    VOCABULARY_FILES,
    remove_model_checksums,
    write_model_checksums,
)
from bert_tf.checkpoints.saving import save, tensor_values
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import canonical_name, is_task_tensor, task_names, tensor_shapes
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, UnknownModel
from bert_tf.files import read_json, write_json
from bert_tf.parameters import REPEATED_BIAS
from bert_tf.tokenizers import BaseTokenizer, read_tokenizer
from bert_tf.tokenizers.vocabulary import RUST_FILE, VOCABULARY_FILE

if TYPE_CHECKING:  # it imports Keras
    from bert_tf.models import BertModel

OpenFolder = Callable[[Path], tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]]


def base_model(folder: str | os.PathLike) -> str | None:
    """Return the name of a delta folder's base model, or None for a folder that holds a complete model."""
    return _reference(folder).get("base_model")


def _reference(folder):
    paths = (Path(folder) / name for name in REFERENCE_FILES)
    return next((read_json(path) for path in paths if path.is_file()), {})


def open_delta(folder: Path, open_folder: OpenFolder) -> tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]:
    """Open a delta folder together with its base model; see `reading.open_folder`.

    Args:
        folder: Path. The delta folder.
        open_folder: callable. It opens the folder of the base model.

    Returns:
        (`BertConfig`, tokenizer, dict of canonical name -> `StoredTensor`).

    Raises:
        CheckpointError: the base model is not installed, is itself a delta folder, or is not the model that was
            trained.
    """
    values = _reference(folder)
    base = find(values["base_model"])
    if base_model(base):
        raise CheckpointError(
            f"{folder} needs the base model {base}, which itself needs a base model; only one level is supported."
        )
    config = BertConfig.from_json(folder / "config.json")
    _, tokenizer, tensors = open_folder(base)
    stored, inherited = _stored_and_inherited(folder, config, tensors)
    factors = {name: stored.pop(name) for name in list(stored) if is_lora(name)}
    # Older folders hold a signature of all tensors of the base model.
    if values.get("base_sign") not in (None, _signature(inherited), _signature(tensors)):
        raise CheckpointError(
            f"{folder} was trained on another {values['base_model']} than {base}; get the one it was trained on."
        )
    # Every tokenizer writes one of these. A SentencePiece model alone was left over by earlier versions.
    if any((folder / name).is_file() for name in (RUST_FILE, VOCABULARY_FILE)):
        tokenizer = read_tokenizer(folder)
    return config, tokenizer, {**merged(folder, inherited, factors), **stored}


def _stored_and_inherited(folder, config, tensors):
    """The tensors that the folder holds, and those that it inherits from the base model."""
    stored = {canonical_name(name, config.architecture): tensor for name, tensor in open_tensors(folder).items()}
    stored.pop(REPEATED_BIAS, None)
    for name, own in task_names(stored, config.architecture).items():
        stored[own] = stored.pop(name)
    needed = set(tensor_shapes(config, ()))
    # The pre-training heads of the base model were not trained with the folder, so they are not inherited. The pooler
    # is inherited if the folder's architecture has one and the folder does not hold it.
    if "pooler" in config.architecture.heads:
        needed |= {name for name in tensors if name.startswith("bert.pooler.")}
    needed -= set(stored)
    return stored, {name: tensor for name, tensor in tensors.items() if name in needed and not is_task_tensor(name)}


def check_base(base: str | os.PathLike) -> None:
    """Check that a model can be the base of a delta folder.

    Args:
        base: str or path. The name or folder of the model.

    Raises:
        CheckpointError: the model is itself a delta folder.
    """
    if lower := base_model(find(base)):
        raise CheckpointError(
            f"{base} is stored over {lower}, and a model stored over {base} could not be read; "
            f"store the whole model (without --delta), or begin with {lower}."
        )


def reference(base: str | os.PathLike) -> str:
    """Return how a folder names its base model: a known name unchanged, or the absolute path of a folder."""
    try:
        find(base, allow_paths=False)
        return str(base)
    except UnknownModel:
        return str(find(base).resolve())


def remove_vocabulary(folder: str | os.PathLike) -> None:
    """Delete the vocabulary files of a delta folder whose base model has the same vocabulary."""
    for name in VOCABULARY_FILES:
        (Path(folder) / name).unlink(missing_ok=True)


def fingerprint(folder: Path, config: BertConfig, tensors: Mapping[str, StoredTensor]) -> str | None:
    """Return a short hash of the tensors that a delta folder inherits from its base model.

    It hashes two LayerNorm weights, so it changes in nearly every case in which an inherited tensor changes. Training
    of tensors that are not inherited does not change it.

    Args:
        folder: Path. The delta folder, with its tensors written.
        config: `BertConfig`. The settings of the delta folder.
        tensors: dict of canonical name -> `StoredTensor`. The tensors of the base model.

    Returns:
        str, or None if no normalization is inherited.
    """
    return _signature(_stored_and_inherited(folder, config, tensors)[1])


def _signature(tensors):
    norms = sorted(name for name in tensors if name.endswith("LayerNorm.weight"))
    # ModernBERT normalizes before its blocks, so it has no norm of this name.
    vectors = [name for name in norms if name.endswith("output.LayerNorm.weight")] or norms
    if not vectors:
        return None
    digest = hashlib.sha256()
    for name in (vectors[0], vectors[-1]):
        digest.update(tensors[name].read().astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def save_delta(
    folder: str | os.PathLike,
    config: BertConfig,
    tokenizer: BaseTokenizer,
    model: BertModel,
    base: str | os.PathLike,
    open_folder: OpenFolder,
    **options: Any,
) -> Path:
    """Write a delta folder of a pre-trained model: its heads, and its other tensors that differ from a base model.

    Args:
        folder: str or path. As in `save`.
        config: `BertConfig`. As in `save`.
        tokenizer: tokenizer. As in `save`.
        model: `BertModel`. As in `save`.
        base: str or path. The name or folder of the base model, of the same width and vocabulary.
        open_folder: callable. It opens the folder of the base model.
        **options: Further arguments of `save`.

    Returns:
        Path of the folder.

    Raises:
        CheckpointError: as `save` and `check_base`, or the base model has another vocabulary.
    """
    check_base(base)
    _, base_tokenizer, tensors = open_folder(find(base))
    if base_tokenizer.vocab != tokenizer.vocab:
        raise CheckpointError(f"{base} has another vocabulary than the model to store, so it cannot be its base model.")
    body = tensor_shapes(config, ())
    equal = {
        name
        for name, value in tensor_values(model)
        if name in body and name in tensors and np.array_equal(tensors[name].read(), value)
    }
    path = save(folder, config, tokenizer, model, leave_out=equal, **options)
    remove_model_checksums(path)  # further files change
    if base_tokenizer.cuts_alike(tokenizer):
        remove_vocabulary(path)
    write_json(path / "base.json", {"base_model": reference(base), "base_sign": fingerprint(path, config, tensors)})
    write_model_checksums(path)
    return path
