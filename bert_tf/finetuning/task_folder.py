"""A fine-tuned model as a folder: our model folder with the head's tensors among the others, and task.json.

Tensors and settings are named as Hugging Face names them, so that Transformers loads the folder and a folder
of Transformers' is loaded here.
"""

from pathlib import Path

import numpy as np

from bert_tf.checkpoints import find, save
from bert_tf.checkpoints.delta import base_model, fingerprint, reference, remove_vocabulary
from bert_tf.checkpoints.reading import open_folder
from bert_tf.checkpoints.tensor_names import (
    classifier_has_pooler,
    classifier_name,
    heads_present,
    is_task_tensor,
    tensor_shapes,
)
from bert_tf.errors import CheckpointError
from bert_tf.files import write_json
from bert_tf.finetuning.task_settings import FILE, transformers_class


def save_task(folder, config, tokenizer, network, settings, card=None, dtype="float32", delta_of=None):
    """Writes a fine-tuned model.

    Args:
        folder: path, made if it is not there. config: `BertConfig`. tokenizer: `Tokenizer`.
        network: `TaskNetwork`. settings: `TaskSettings`. card: text of README.md, None for a short one.
        dtype: as in `checkpoints.save`; the head is never stored in eight bits.
        delta_of: name or folder of the model that training began from: then only the tensors that were
            trained are written, and this model is needed to load the folder.

    Raises: CheckpointError as `checkpoints.save`.
    """
    frozen = _frozen(network) if delta_of else frozenset()
    kind = transformers_class(settings, config.architecture)
    within = _pooler_within(network, settings, kind) - frozen
    variables = {**network.head.named_variables(), **{name: network.named_variables()[name] for name in within}}
    head = {
        classifier_name(name) if within else name: _outward(np.asarray(variable))
        for name, variable in variables.items()
    }
    save(
        folder,
        config,
        tokenizer,
        network.bert,
        dtype,
        card=card,
        head=head,
        settings=_config_entries(settings, kind),
        leave_out=frozen | within,
    )
    values = settings.replace(base_model=reference(delta_of) if delta_of else None).to_dict()
    if delta_of:
        _, base_tokenizer, tensors = open_folder(find(delta_of))
        values["base_sign"] = fingerprint(Path(folder), config, tensors)
        if base_tokenizer.vocab == tokenizer.vocab:
            remove_vocabulary(folder)
    write_json(Path(folder) / FILE, values)


def load_head(folder, network):
    """Reads the head's tensors into a network that was made with `network_over`.

    Raises: CheckpointError: one is missing, unknown, of another shape, or not finite.
    """
    folder = Path(folder)
    stored = {name: tensor for name, tensor in open_folder(folder)[2].items() if is_task_tensor(name)}
    variables = network.head.named_variables()
    if unknown := sorted(set(stored) - set(variables)):
        raise CheckpointError(f"{folder}: {unknown[0]} does not belong to a {network.name!r} head of these settings.")
    for name, variable in variables.items():
        if name not in stored:
            raise CheckpointError(f"{folder}: {name} is missing from the weights; the head is incomplete.")
        value = _outward(stored[name].finite()).astype(np.float32)
        if value.shape != tuple(variable.shape):
            raise CheckpointError(
                f"{folder}: {name} has shape {stored[name].shape}, but its settings ask for "
                f"{_outward(np.asarray(variable)).shape}."
            )
        variable.assign(value)


def _outward(value):
    """A head's matrix in Hugging Face's orientation, [out, in], or back; vectors as they are.

    A matrix that is no dense layer's (the transitions of a chain) is turned both ways, which is none.
    """
    return np.ascontiguousarray(value.T) if value.ndim == 2 else value


def _frozen(network):
    """Names of the encoder's tensors that were not trained."""
    variables = network.named_variables()
    return frozenset(
        name for name in tensor_shapes(network.bert_config, network.bert_heads) if not variables[name].trainable
    )


def _pooler_within(network, settings, kind):
    """Names of the pooler's tensors, where Transformers' class has them in its classifier."""
    if settings.task != "classify" or kind is None or not classifier_has_pooler(network.bert_config.architecture):
        return frozenset()
    shapes = tensor_shapes(network.bert_config, ("pooler",))
    return frozenset(name for name in shapes if heads_present([name]) == {"pooler"})


def _config_entries(settings, kind):
    """What Transformers reads of a task in config.json. kind: its class, None where none has this head."""
    entries = {"finetuning_task": settings.task}
    if kind:
        entries["architectures"] = [kind]
    names = list(settings.labels) or (["value"] if settings.regression else [])
    if names:
        entries["id2label"] = {str(index): name for index, name in enumerate(names)}
        entries["label2id"] = {name: index for index, name in enumerate(names)}
    if settings.task == "classify":
        entries["problem_type"] = (
            "regression"
            if settings.regression
            else "multi_label_classification"
            if settings.multi_label
            else "single_label_classification"
        )
    return entries


__all__ = ["base_model", "load_head", "save_task"]
