"""Saves and loads the folder of a fine-tuned model: a model folder with the tensors of the head, and task.json.

Tensors and settings have Hugging Face's names, so that Transformers can load the folder, and folders of Transformers
can be loaded here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.checkpoints import find, save
from bert_tf.checkpoints.delta import base_model, fingerprint, reference, remove_vocabulary
from bert_tf.checkpoints.hub_repository import MODULES_FILE
from bert_tf.checkpoints.model_checksums import remove_model_checksums, write_model_checksums
from bert_tf.checkpoints.reading import open_folder
from bert_tf.checkpoints.tensor_names import (
    classifier_has_pooler,
    classifier_name,
    heads_present,
    is_task_tensor,
    tensor_shapes,
)
from bert_tf.errors import CheckpointError
from bert_tf.files import write_json, write_text
from bert_tf.finetuning.task_settings import (
    FILE,
    POOLING_MODES,
    POOLINGS_OF_MODES,
    transformers_class,
)

if TYPE_CHECKING:
    from bert_tf.config import BertConfig
    from bert_tf.finetuning.task_network import TaskNetwork
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.task import Task
    from bert_tf.tokenizers.base import BaseTokenizer


def save_task(
    folder: str | Path,
    config: BertConfig,
    tokenizer: BaseTokenizer,
    network: TaskNetwork,
    settings: TaskSettings,
    card: str | None = None,
    dtype: str = "float32",
    delta_of: str | Path | None = None,
    packed: bool = False,
) -> None:
    """Writes a fine-tuned model.

    Args:
        folder: str or Path. The folder to write to; it is created if it does not exist.
        config: `BertConfig`.
        tokenizer: `Tokenizer`.
        network: `TaskNetwork`.
        settings: `TaskSettings`.
        card: str. The text of README.md; None for a short one.
        dtype: str. As in `checkpoints.save`; the head is never stored in eight bits.
        delta_of: str or Path. The name or folder of the model that the training started from. If it is set, only the
            trained tensors and the low-rank updates are written, and this model is needed to load the folder.
        packed: bool. As in `checkpoints.save`.

    Raises: CheckpointError as `checkpoints.save`.
    """
    from bert_tf.training.lora import lora_values

    frozen = _frozen(network) if delta_of else frozenset()
    class_name = transformers_class(settings, config.architecture)
    pooler_names = _classifier_pooler_names(network, settings, class_name) - frozen
    variables = {**network.head.named_variables(), **{name: network.named_variables()[name] for name in pooler_names}}
    head = {
        classifier_name(name) if pooler_names else name: _transposed(np.asarray(variable))
        for name, variable in variables.items()
    }
    if delta_of:
        head |= {config.architecture.stored_name(name): value for name, value in lora_values(network).items()}
    save(
        folder,
        config,
        tokenizer,
        network.bert,
        dtype,
        card=card,
        head=head,
        settings=_config_entries(settings, class_name, config.architecture),
        leave_out=frozen | pooler_names | _masked_lm_names(config),
        packed=packed,
    )
    remove_model_checksums(folder)  # further files change
    values = settings.replace(base_model=reference(delta_of) if delta_of else None).to_dict()
    if delta_of:
        _, base_tokenizer, tensors = open_folder(find(delta_of))
        values["base_sign"] = fingerprint(Path(folder), config, tensors)
        if base_tokenizer.cuts_alike(tokenizer):
            remove_vocabulary(folder)
    write_json(Path(folder) / FILE, values)
    if settings.task == "similarity":
        _write_modules(Path(folder), config, settings)
    write_model_checksums(folder)


def read_head(folder: str | Path, task_type: Task, settings: TaskSettings, config: BertConfig) -> dict[str, np.ndarray]:
    """Reads the tensors of the head.

    Args:
        folder: str or Path. The model folder.
        task_type: `Task`.
        settings: `TaskSettings`.
        config: `BertConfig`.

    Returns: dict of Hugging Face name -> float32 array, with the shapes of `Task.head_shapes`.

    Raises: CheckpointError if a tensor is missing, unknown, of another shape, or not finite.
    """
    folder = Path(folder)
    stored = {name: tensor for name, tensor in open_folder(folder)[2].items() if is_task_tensor(name)}
    shapes = task_type.head_shapes(settings, config)
    if unknown := sorted(set(stored) - set(shapes)):
        raise CheckpointError(f"{folder}: {unknown[0]} does not belong to a {task_type.task!r} head of these settings.")
    for name, shape in shapes.items():
        if name not in stored:
            raise CheckpointError(f"{folder}: {name} is missing from the weights; the head is incomplete.")
        if stored[name].shape != shape:
            raise CheckpointError(f"{folder}: {name} has shape {stored[name].shape}, but its settings ask for {shape}.")
    return {name: stored[name].finite().astype(np.float32, copy=False) for name in shapes}


def assign_head(network: TaskNetwork, tensors: Mapping[str, np.ndarray]) -> None:
    """Assigns the result of `read_head` to the head of a network made by `network_over`."""
    for name, variable in network.head.named_variables().items():
        variable.assign(_transposed(tensors[name]))


def _write_modules(folder, config, settings):
    """Writes the files by which sentence-transformers computes the same vectors."""
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    modules += [("2_Normalize", "Normalize")] * settings.extra["normalize"]
    listed = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (path, kind) in enumerate(modules)
    ]
    write_text(folder / MODULES_FILE, json.dumps(listed, indent=2) + "\n")
    for path, _ in modules[1:]:
        (folder / path).mkdir(exist_ok=True)
    modes = {name: POOLINGS_OF_MODES.get(word) == settings.pooling for name, word in POOLING_MODES.items()}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": config.hidden_size, **modes})
    values = {"max_seq_length": settings.max_length, "do_lower_case": settings.extra["lower_case"]}
    write_json(folder / "sentence_bert_config.json", values)


def _transposed(value):
    """Transposes a matrix of the head to Hugging Face's orientation, [out, in], or back; vectors do not change.

    A matrix that is not of a dense layer (the transitions of a CRF) is transposed when it is saved and again when it is
    loaded, so it does not change.
    """
    return np.ascontiguousarray(value.T) if value.ndim == 2 else value


def _frozen(network):
    """The names of the encoder's tensors that were not trained.

    A matrix with a low-rank update is the sum of a frozen variable and the update, which is stored by itself.
    """
    variables = network.named_variables()
    return frozenset(
        name
        for name in tensor_shapes(network.bert_config, network.bert_heads)
        if not getattr(variables[name], "trainable", False)
    )


def _classifier_pooler_names(network, settings, class_name):
    """The names of the pooler's tensors if the Transformers class has them in its classifier, else an empty set."""
    if settings.task != "classify" or class_name is None or not classifier_has_pooler(network.bert_config.architecture):
        return frozenset()
    shapes = tensor_shapes(network.bert_config, ("pooler",))
    return frozenset(name for name in shapes if heads_present([name]) == {"pooler"})


def _masked_lm_names(config):
    """The tensors of the MLM head if those of a task's head have the same names in the files; else an empty set."""
    if not config.architecture.prediction_head:
        return frozenset()
    return frozenset(tensor_shapes(config, ("mlm",))) - frozenset(tensor_shapes(config, ()))


def _config_entries(settings, class_name, architecture):
    """The entries of config.json that Transformers reads for a task; `class_name`: its class, or None."""
    entries = {"finetuning_task": settings.task}
    if class_name:
        entries["architectures"] = [class_name]
    names = list(settings.labels) or (["value"] if settings.regression and settings.task == "classify" else [])
    if names:
        entries["id2label"] = {str(index): name for index, name in enumerate(names)}
        entries["label2id"] = {name: index for index, name in enumerate(names)}
    if settings.task == "classify":
        if class_name and architecture.prediction_head:
            entries["classifier_pooling"] = settings.pooling
        entries["problem_type"] = (
            "regression"
            if settings.regression
            else "multi_label_classification"
            if settings.multi_label
            else "single_label_classification"
        )
    return entries


__all__ = ["assign_head", "base_model", "read_head", "save_task"]
