"""KerasHub (formerly KerasNLP) presets of `BertBackbone`, read and written with h5py, without KerasHub. Presets of
other members, of tasks and in eight bits are read by KerasHub itself (`keras_nlp_backbone`).

The preset of a backbone holds the encoder and the pooler; it cannot hold BERT's MLM and NSP heads. The backbone of
KerasHub 0.32 computes the tanh approximation of GELU, so a preset is read with `hidden_act="gelu_new"`. A preset that
this project wrote names its own activation in metadata.json.

N heads, D head size, H hidden size. Source: the files that `save_to_preset` of keras_hub 0.32 writes.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.checkpoints.formats.keras_h5 import DAMAGED, dataset_shapes
from bert_tf.checkpoints.formats.keras_nlp_backbone import (
    BACKBONES,
    IN_LAYER,
    SETTINGS,
    backbone_config,
    open_with_keras_nlp,
    stored_policy,
    task_of_preset,
)
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import classifier_has_pooler, tensor_shapes
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.files import (
    atomic_write,
    read_json,
    system_errors,
    write_json,
    write_text,
)
from bert_tf.tokenizers import BaseTokenizer, Tokenizer

WEIGHTS_FILE = "model.weights.h5"
_METADATA_FILE, _OWN = "metadata.json", "bert_tf"
_VOCABULARIES = ("assets/tokenizer/vocabulary.txt", "assets/vocabulary.txt", "vocab.txt")
_EPSILON = 1e-12  # fixed in BertBackbone
_SETTINGS = {**SETTINGS, **BACKBONES["bert"].settings}
#: hidden_act -> (what it is, how Keras writes it).
_ACTIVATIONS = {
    "gelu": ("the exact GELU", "keras.activations.gelu"),
    "gelu_new": ("the tanh approximation of GELU", "functools.partial(keras.activations.gelu, approximate=True)"),
}
_TOKENIZER_NOTE = (
    "KerasHub's BertTokenizer gives other tokens than this model's for texts with control or format characters (it "
    "splits words there, BERT drops them) or with spaces other than the usual one (U+00A0, U+3000: it takes them as "
    "letters)"
)
_LOWERCASE_NOTE = (
    ", and, as it folds case and compatibility characters where BERT only lower-cases, for ligatures, ß, Greek final "
    "sigma, fractions, Roman numerals, the ellipsis and Hangul"
)
# A weights file of Keras names a layer by its class, with a number from the second layer of the class on.
_FIXED = {
    "bert.embeddings.word_embeddings": "reversible_embedding",
    "bert.embeddings.LayerNorm": "layer_normalization",
    "bert.embeddings.position_embeddings": "position_embedding",
    "bert.embeddings.token_type_embeddings": "embedding",
    "bert.pooler.dense": "dense",
}


def is_preset(folder: str | os.PathLike) -> bool:
    """Return whether a folder is a KerasHub preset (its config.json is a serialised Keras object)."""
    try:
        return "registered_name" in read_json(Path(folder) / "config.json")
    except CheckpointError:
        return False


def preset_config(folder: str | os.PathLike) -> BertConfig:
    """Read the `BertConfig` of a preset.

    Raises:
        CheckpointError: the preset is none of `BACKBONES`, or a setting is missing.
    """
    path = Path(folder) / "config.json"
    values = read_json(path)
    if not isinstance(values.get("config"), dict):
        raise CheckpointError(f"{path} describes a {values.get('class_name')!r} without its config.")
    config = backbone_config(str(values.get("class_name")), values["config"], str(path))
    return config.replace(hidden_act=own_entries(folder).get("hidden_act", config.hidden_act))


def preset_heads(folder: str | os.PathLike, config: BertConfig) -> frozenset[str]:
    """The pre-training heads that a preset of these settings has here."""
    task, _ = task_of_preset(folder) or (None, None)
    in_classifier = task == "TextClassifier" and classifier_has_pooler(config.architecture)
    has_pooler = BACKBONES[config.model_type].pooler and own_entries(folder).get("pooler", True) or in_classifier
    heads = {"pooler"} if has_pooler else set()
    return frozenset(heads | {"mlm"} if task == "MaskedLM" else heads)


def own_entries(folder: str | os.PathLike) -> dict[str, Any]:
    """What this project wrote into the metadata of a preset: "hidden_act", "task" with the settings of a task, and
    "pooler", False if the model has none: a backbone of keras_nlp always has one."""
    path = Path(folder) / _METADATA_FILE
    entries = read_json(path).get(_OWN) if path.is_file() else None
    return entries if isinstance(entries, dict) else {}


def write_own_entries(folder: str | os.PathLike, **entries: Any) -> None:
    """Write into the metadata of a preset what KerasHub does not store."""
    path = Path(folder) / _METADATA_FILE
    write_json(path, {**read_json(path), _OWN: entries})


def open_preset(folder: str | os.PathLike) -> tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]:
    """Read the settings, the tokenizer and the shapes of the weights of a preset.

    Returns:
        (`BertConfig`, tokenizer, dict of canonical name -> `StoredTensor`).

    Raises:
        CheckpointError: a file is missing or truncated, or the preset is none of `BACKBONES`.
    """
    folder = Path(folder)
    config, path = preset_config(folder), folder / WEIGHTS_FILE
    if config.model_type != "bert" or task_of_preset(folder) or stored_policy(folder):
        _, tokenizer, tensors = open_with_keras_nlp(str(folder))
        return config, tokenizer, _own_tensors(folder, tensors)
    if not path.is_file():
        raise CheckpointError(f"{folder} has no {WEIGHTS_FILE}; only presets with their weights in one file are read.")
    shapes_in_file = dataset_shapes(path)
    tensors = {}
    for name, shape in tensor_shapes(config, heads=("pooler",)).items():
        key, shape_in_preset = _key_and_shape(name, config)
        if key in shapes_in_file:
            if shapes_in_file[key] != shape_in_preset:
                raise CheckpointError(
                    f"{path}: {key} has shape {shapes_in_file[key]}, but the settings of {folder} need "
                    f"{shape_in_preset}."
                )
            del shapes_in_file[key]
            tensors[name] = _stored(path, name, key, shape)
    for key, shape in shapes_in_file.items():
        if not key.startswith("optimizer/") and "seed_generator" not in key:
            tensors[key] = _stored(path, key, key, shape)  # an unknown tensor, which `reading.check` refuses
    return config, _tokenizer(folder), _own_tensors(folder, tensors)


def _own_tensors(folder, tensors):
    """The tensors of a preset, without the pooler of a model that had none."""
    has_pooler = own_entries(folder).get("pooler", True)
    return {name: tensor for name, tensor in tensors.items() if has_pooler or not name.startswith("bert.pooler.")}


def _key_and_shape(name, config):
    """The key of a canonical tensor in the HDF5 file, and its shape there."""
    stem, kind = name.rsplit(".", 1)
    index = 0 if kind == "weight" else 1
    shape = tensor_shapes(config)[name]
    if stem in _FIXED:
        stored_shape = shape[::-1] if stem == "bert.pooler.dense" else shape
        return f"layers/{_FIXED[stem]}/vars/{index}", stored_shape
    number, part = stem.removeprefix("bert.encoder.layer.").split(".", 1)
    layer = "transformer_encoder" if number == "0" else f"transformer_encoder_{number}"
    heads = (config.num_attention_heads, config.head_size)
    if part.startswith("attention.self."):
        shape = (config.hidden_size, *heads) if kind == "weight" else heads  # [H, N, D] or [N, D]
    elif part == "attention.output.dense" and kind == "weight":
        shape = (*heads, config.hidden_size)  # [N, D, H]
    elif part.endswith("dense"):
        shape = shape[::-1]
    return f"layers/{layer}/{IN_LAYER[part]}/vars/{index}", shape


def _is_dense_matrix(name):
    return name.endswith(".weight") and "LayerNorm" not in name and not name.startswith("bert.embeddings.")


def _stored(path, name, key, shape):
    def read(rows=slice(None)):
        import h5py

        try:
            with h5py.File(path) as file:
                if by_rows:
                    return file[key][rows]
                value = file[key][()]
        except DAMAGED as error:
            raise CheckpointError(f"{path}: {key} cannot be read ({error}); copy or download it again.") from error
        return (value.reshape(shape[::-1]).T if _is_dense_matrix(name) else value.reshape(shape))[rows]

    by_rows = name.startswith("bert.embeddings.")  # these have the canonical shape in the file
    return StoredTensor(path, key, shape, read, by_rows)


def _tokenizer(folder):
    vocabulary = next((folder / name for name in _VOCABULARIES if (folder / name).is_file()), None)
    if vocabulary is None:
        raise CheckpointError(f"{folder} has no {_VOCABULARIES[0]}; save the preset with its tokenizer.")
    path = folder / "tokenizer.json"
    settings = read_json(path).get("config", {}) if path.is_file() else {}
    if not isinstance(settings, dict):
        raise CheckpointError(
            f"{path}: its config is {settings!r:.60}, but must be an object; download the file again."
        )
    # KerasHub does not strip accents by default, although the released uncased weights were trained on stripped
    # text. So only an explicit True is used; otherwise BERT's original rule decides.
    strip = settings.get("strip_accents") or None
    # KerasHub reads this setting, but does not write it.
    splits = settings.get("split_on_cjk", True)
    return Tokenizer(vocabulary, settings.get("lowercase"), strip_accents=strip, tokenize_chinese_chars=splits)


def write_preset(folder: Path, config: BertConfig, tokenizer: BaseTokenizer, tensors: Mapping[str, np.ndarray]) -> None:
    """Write a preset folder that `keras_hub.models.BertBackbone.from_preset(folder)` loads.

    Args:
        folder: Path. An existing folder.
        config: `BertConfig`. The settings.
        tokenizer: WordPiece tokenizer. Its vocabulary and options are written.
        tensors: dict of canonical name -> array in Hugging Face's orientation. Heads other than the pooler are
            left out.

    Raises:
        CheckpointError: a `BertBackbone` cannot hold this model.
    """
    import h5py

    _check_representable(config, tokenizer, tensors)
    path = folder / WEIGHTS_FILE
    with system_errors(path, OSError), atomic_write(path) as temporary, h5py.File(temporary, "w") as file:
        for name in tensor_shapes(config, heads=("pooler",)):
            key, shape = _key_and_shape(name, config)
            value = tensors[name].T if _is_dense_matrix(name) else tensors[name]
            file[key] = value.reshape(shape)
    write_json(folder / "config.json", _backbone_json(config))
    write_json(folder / "tokenizer.json", _tokenizer_json(tokenizer))
    metadata = {"keras_hub_version": "0.32.0", "tasks": [], _OWN: {"hidden_act": config.hidden_act}}
    write_json(folder / _METADATA_FILE, metadata)
    (folder / "assets" / "tokenizer").mkdir(parents=True, exist_ok=True)
    write_text(
        folder / "assets" / "tokenizer" / "vocabulary.txt", "\n".join(tokenizer.vocab[: tokenizer.token_count]) + "\n"
    )
    write_text(folder / "README.md", _card(config, tokenizer))


def _check_representable(config, tokenizer, tensors):
    if config.model_type != "bert":
        raise CheckpointError(f"KerasHub presets can hold BERT only, not {config.architecture.title}.")
    if not isinstance(tokenizer, Tokenizer):
        raise CheckpointError(
            f"KerasHub's BertTokenizer is a WordPiece tokenizer, and this model has a {type(tokenizer).__name__}; "
            "write the format 'hf'."
        )
    if "bert.pooler.dense.weight" not in tensors:
        raise CheckpointError("A KerasHub BertBackbone always has a pooler, and this model has none.")
    if not config.type_vocab_size:
        raise CheckpointError(
            "A KerasHub BertBackbone always has segments, and this model has none (type_vocab_size 0)."
        )
    if config.layer_norm_eps != _EPSILON:
        raise CheckpointError(
            f"A KerasHub BertBackbone has layer_norm_eps {_EPSILON}, and this model has {config.layer_norm_eps}."
        )
    if config.hidden_act not in ("gelu", "gelu_new"):
        raise CheckpointError(f"A KerasHub BertBackbone computes GELU, and this model computes {config.hidden_act!r}.")


def _backbone_json(config):
    settings = {name: getattr(config, setting) for name, setting in _SETTINGS.items()}
    return _keras_object("bert_backbone", "BertBackbone", "float32", settings)


def _tokenizer_json(tokenizer):
    settings = {
        "config_file": "tokenizer.json",
        "vocabulary": None,
        "sequence_length": None,
        "lowercase": tokenizer.lower_case,
        "strip_accents": tokenizer.strips_accents,
        "split": True,
        "split_on_cjk": tokenizer.tokenize_chinese_chars,
        "suffix_indicator": "##",
        "oov_token": "[UNK]",
        "special_tokens": None,
        # As ours: "[MASK]" in a text is the token.
        "special_tokens_in_strings": True,
    }
    return _keras_object("bert_tokenizer", "BertTokenizer", "int32", settings)


def _keras_object(module, kind, dtype, settings):
    """A serialised object as Keras 3 writes it."""
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": dtype}, "registered_name": None}
    return {
        "module": f"keras_hub.src.models.bert.{module}",
        "class_name": kind,
        "config": {"name": module, "trainable": True, "dtype": policy, **settings},
        "registered_name": f"keras_hub>{kind}",
    }


def differences_note(config: BertConfig, tokenizer: BaseTokenizer) -> str:
    """Return a remark for users if KerasHub's activation or tokenizer differs from this model's, else ""."""
    record = BACKBONES[config.model_type]
    notes = []
    if config.hidden_act != record.hidden_act:
        (theirs, _), (ours, code) = _ACTIVATIONS[record.hidden_act], _ACTIVATIONS[config.hidden_act]
        notes.append(
            f"KerasHub's {record.prefix}Backbone computes {theirs} and this model computes {ours}, so outputs differ "
            "in the third decimal. For equal outputs, run after loading: for layer in backbone.transformer_layers: "
            f"layer._feedforward_intermediate_dense.activation = {code}"
        )
    if not isinstance(tokenizer, Tokenizer):
        notes.append(
            f"KerasHub's {record.prefix}Tokenizer takes a special token in a text, such as {tokenizer.mask_token}, as "
            "text; for equal tokens give it the ids of `bert_tf`'s tokenizer."
        )
    elif tokenizer.pipeline is not None:
        notes.append(
            "KerasHub's BertTokenizer cuts text as BERT does, and this model's tokenizer.json cuts it otherwise or "
            "adds tokens: give KerasHub's backbone the ids of this model's own tokenizer."
        )
    else:
        lowercase = _LOWERCASE_NOTE if getattr(tokenizer, "lower_case", False) else ""
        notes.append(f"{_TOKENIZER_NOTE}{lowercase}; for equal tokens give it the ids of `bert_tf`'s tokenizer.")
    return " ".join(notes)


def _card(config, tokenizer):
    return (
        f"---\nlibrary_name: keras-hub\n---\n\nA BERT encoder of {config.num_hidden_layers} layers, "
        f"hidden size {config.hidden_size}, as a KerasHub preset: "
        "`keras_hub.models.BertBackbone.from_preset(folder)`.\nIt has no MLM and no NSP head: the format "
        f"cannot store them.\n\n{differences_note(config, tokenizer)}\n"
    )
