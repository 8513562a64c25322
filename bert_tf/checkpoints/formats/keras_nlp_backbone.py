"""Live backbones and tasks of keras_nlp (KerasHub): read into this project's tensors, and backbones made of them.

keras_nlp itself reads the presets, so that its names, `hf://` and `kaggle://` handles and folders work for every
architecture. It is imported only here, and only when a function is called.

Source: the backbones of keras_hub 0.32.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.architectures import ARCHITECTURES
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import classifier_has_pooler, tensor_shapes
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.files import read_json
from bert_tf.parameters import is_transposed
from bert_tf.tokenizers import Tokenizer
from bert_tf.tokenizers.byte_level_bpe import ByteLevelTokenizer
from bert_tf.tokenizers.sentence_piece import DebertaTokenizer, SentencePieceTokenizer, XlmRobertaTokenizer

if TYPE_CHECKING:
    from bert_tf.tokenizers import BaseTokenizer

#: The sublayers of a `TransformerEncoder` of keras_nlp, by the names of their tensors here.
IN_LAYER = {
    "attention.self.query": "_self_attention_layer/query_dense",
    "attention.self.key": "_self_attention_layer/key_dense",
    "attention.self.value": "_self_attention_layer/value_dense",
    "attention.output.dense": "_self_attention_layer/output_dense",
    "attention.output.LayerNorm": "_self_attention_layer_norm",
    "intermediate.dense": "_feedforward_intermediate_dense",
    "output.dense": "_feedforward_output_dense",
    "output.LayerNorm": "_feedforward_layer_norm",
}
#: The same of DeBERTa-v3's layer, where they have other names.
IN_DISENTANGLED_LAYER = {
    **IN_LAYER,
    **{name: path.replace("_self_attention_layer/", "_self_attention_layer/_") for name, path in IN_LAYER.items()},
}
#: The ends of the names of the tasks with a head that is read.
TASKS = ("MaskedLM", "TextClassifier")
#: Argument of a backbone -> setting of `BertConfig`.
SETTINGS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "dropout": "hidden_dropout_prob",
}


@dataclass(frozen=True)
class BackboneRecord:
    """A backbone of keras_nlp.

    Attributes:
        prefix: str. The beginning of its class names: "Bert" of `BertBackbone` and `BertMaskedLM`.
        hidden_act: str. Its activation.
        settings: dict of argument -> setting, beside or in the place of those of `SETTINGS`.
        embeddings: str. The path of the layer with the tables of tokens and positions; "" for the backbone.
        pooler: bool. Whether its `pooled_dense` is trained, as ours.
        in_layer: dict. The sublayers of its encoder layers, by the names of their tensors here.
    """

    prefix: str
    hidden_act: str
    settings: Mapping[str, str]
    embeddings: str = ""
    pooler: bool = False
    in_layer: Mapping[str, str] = field(default_factory=lambda: IN_LAYER)


_SEGMENTS = {"num_segments": "type_vocab_size"}
#: model_type -> `BackboneRecord`.
BACKBONES = {
    "bert": BackboneRecord("Bert", "gelu_new", _SEGMENTS, pooler=True),
    "roberta": BackboneRecord("Roberta", "gelu", {}, "embeddings"),
    "xlm-roberta": BackboneRecord("XLMRoberta", "gelu", {}, "embeddings"),
    "distilbert": BackboneRecord("DistilBert", "gelu", {}, "embeddings"),
    "albert": BackboneRecord(
        "Albert",
        "gelu_new",
        {**_SEGMENTS, "embedding_dim": "embedding_size", "num_groups": "num_hidden_groups"},
        pooler=True,
    ),
    "electra": BackboneRecord(
        "Electra",
        "gelu_new",
        {**_SEGMENTS, "vocab_size": "vocab_size", "embedding_dim": "embedding_size"},
    ),
    # Of its lengths only the farthest relative position changes what is computed.
    "deberta-v2": BackboneRecord(
        "DebertaV3",
        "gelu",
        {"bucket_size": "position_buckets", "max_sequence_length": "max_relative_positions"},
        in_layer=IN_DISENTANGLED_LAYER,
    ),
}


def backbone_config(class_name: str, values: Mapping[str, Any], source: str) -> BertConfig:
    """The `BertConfig` of a backbone.

    Args:
        class_name: str. The name of its class, such as "BertBackbone".
        values: dict. Its arguments, as its `get_config` returns them.
        source: str. Where they come from, for the messages.

    Raises:
        CheckpointError: the backbone is none of `BACKBONES`, or an argument is missing.
    """
    model_type = next((name for name, record in BACKBONES.items() if f"{record.prefix}Backbone" == class_name), None)
    if model_type is None:
        known = ", ".join(f"{record.prefix}Backbone" for record in BACKBONES.values())
        raise CheckpointError(f"{source} describes a {class_name!r}; only {known} are read.")
    names = _settings_of(model_type)
    if missing := sorted(set(names) - set(values)):
        raise CheckpointError(f"{source} lacks {', '.join(missing)}, which a {class_name} has.")
    if values.get("num_inner_repetitions", 1) != 1:
        raise CheckpointError(f"{source} repeats the layers inside its groups, which is not read.")
    settings = {setting: values[name] for name, setting in names.items()}
    architecture = ARCHITECTURES[model_type]
    if architecture.positions_after_pad:
        # Their table begins with the position of the first token, ours with the rows before it.
        settings["max_position_embeddings"] += architecture.defaults["pad_token_id"] + 1
    if "max_relative_positions" in settings:
        settings["max_position_embeddings"] = settings["max_relative_positions"]
    defaults = {name: value for name, value in architecture.defaults.items() if name not in settings}
    return BertConfig(
        **{
            **defaults,
            **settings,
            "model_type": model_type,
            "hidden_act": BACKBONES[model_type].hidden_act,
            "attention_probs_dropout_prob": values["dropout"],
        }
    )


def _settings_of(model_type):
    names = {**SETTINGS, **BACKBONES[model_type].settings}
    if "vocab_size" in names:
        del names["vocabulary_size"]
    return names


def task_of_preset(folder: str | os.PathLike) -> tuple[str, dict[str, Any]] | None:
    """The task of keras_nlp in a folder.

    Returns:
        (one of `TASKS`, the arguments of its class); None if it is none of them, or without task.json or the weights
        of the head, which keras_nlp then begins at random.

    Raises:
        CheckpointError: task.json is no JSON object.
    """
    path = Path(folder) / "task.json"
    if not path.is_file() or not (Path(folder) / "task.weights.h5").is_file():
        return None
    values = read_json(path)
    task = next((one for one in TASKS if str(values.get("class_name")).endswith(one)), None)
    return None if task is None or not isinstance(values.get("config"), dict) else (task, values["config"])


def open_with_keras_nlp(preset: str) -> tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]:
    """Read a preset by keras_nlp itself; of a folder with one of `TASKS`, its head too.

    Args:
        preset: str. A name of a preset, a handle (`hf://…`, `kaggle://…`) or a folder.

    Returns:
        (`BertConfig`, tokenizer, dict of canonical name -> `StoredTensor`).

    Raises:
        CheckpointError: keras_nlp is not installed, cannot read the preset, or it is none of `BACKBONES`.
    """
    models = keras_nlp_models()
    task = task_of_preset(preset)
    if task is None:
        backbone = _from_preset(models.Backbone, preset, **stored_policy(preset))
    else:
        model = _from_preset(getattr(models, task[0]), preset)
        backbone = model.backbone
    kind = type(backbone).__name__
    config = backbone_config(kind, backbone.get_config(), preset)
    tokenizer = own_tokenizer(_from_preset(models.Tokenizer, preset))
    values = backbone_tensors(backbone, config)
    if task is not None:
        values |= _head_tensors(model, config)
    tensors = {}
    for name, value in values.items():
        tensors[name] = StoredTensor(Path(preset), name, value.shape, lambda rows=slice(None), v=value: v[rows], True)
    return config, tokenizer, tensors


def stored_policy(preset: str | os.PathLike) -> dict[str, Any]:
    """The argument `dtype` of a quantized preset, else {}: keras_nlp 0.32 gives it to a task, but not to a backbone."""
    path = Path(preset) / "config.json"
    policy = read_json(path).get("config", {}).get("dtype") if path.is_file() else None
    is_map = isinstance(policy, dict) and policy.get("class_name") == "DTypePolicyMap"
    return {"dtype": policy} if is_map else {}


def _head_tensors(model, config):
    """The values of a task's head, by their names here."""
    if hasattr(model, "masked_lm_head"):
        head = model.masked_lm_head
        if getattr(head, "token_embedding", None) is None:
            raise CheckpointError("A masked language model of keras_nlp with an output table of its own is not read.")
        norm = head._intermediate_layer_norm
        values = _dense("cls.predictions.transform.dense", head._intermediate_dense)
        values["cls.predictions.transform.LayerNorm.weight"] = np.asarray(norm.gamma, np.float32)
        values["cls.predictions.transform.LayerNorm.bias"] = np.asarray(norm.beta, np.float32)
        return {**values, "cls.predictions.bias": np.asarray(head._bias, np.float32)}
    own_layer = config.architecture.sentence_heads.get("classify")
    first, last = own_layer[1:] if own_layer else ("bert.pooler.dense", "classifier")
    values = _dense(last, model.output_dense if hasattr(model, "output_dense") else model.logits_dense)
    if own_layer or classifier_has_pooler(config.architecture):
        values |= _dense(first, model.pooled_dense)
    return values


def _dense(name, layer):
    return {f"{name}.weight": _value(layer, 0).T.copy(), f"{name}.bias": _value(layer, 1)}


def _value(layer, index):
    """float32 values of a variable of a layer; those in eight bits are divided by the scales of rows or columns."""
    if getattr(layer, "quantization_mode", None) is None:
        return np.asarray(layer.weights[index], np.float32)
    if index:
        return np.asarray(layer.bias, np.float32)
    if hasattr(layer, "embeddings_scale"):
        return np.asarray(layer._embeddings, np.float32) / np.asarray(layer.embeddings_scale, np.float32)[:, None]
    values, scale = np.asarray(layer._kernel, np.float32), np.asarray(layer.kernel_scale, np.float32)
    return values / scale.reshape(scale.shape[-values.ndim :])


def keras_nlp_models() -> Any:
    """The module `keras_nlp.models`.

    Raises:
        CheckpointError: keras_nlp is not installed.
    """
    try:
        import keras_nlp
    except ImportError as error:
        raise CheckpointError(
            f"This needs keras_nlp, which cannot be imported ({error}); install it with `pip install keras-nlp`."
        ) from error
    return keras_nlp.models


def _from_preset(kind, preset, **options):
    try:
        return kind.from_preset(preset, **options)
    except Exception as error:  # of the network, of Kaggle's and the hub's libraries, and of keras_nlp itself
        reason = " ".join(str(error).split())[:300].rstrip(".")
        advice = (
            "Its files are damaged or incomplete: copy or download them again."
            if Path(preset).is_dir()
            else "A name or handle is fetched from Kaggle or the Hugging Face hub, which needs a network; without one "
            "give a folder."
        )
        raise CheckpointError(
            f"keras_nlp cannot read the preset {preset!r} ({type(error).__name__}: {reason}). {advice}"
        ) from error


def own_tokenizer(theirs: Any) -> BaseTokenizer:
    """This project's tokenizer with the vocabulary of a tokenizer of keras_nlp.

    Raises:
        CheckpointError: it is no WordPiece, byte-level or SentencePiece tokenizer.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if hasattr(theirs, "suffix_indicator"):
            (folder / "vocab.txt").write_text("\n".join(theirs.get_vocabulary()) + "\n", encoding="utf-8")
            # As in `kerashub`: weights of uncased models were trained on texts without accents.
            return Tokenizer(
                folder / "vocab.txt",
                theirs.lowercase,
                strip_accents=theirs.strip_accents or None,
                tokenize_chinese_chars=theirs.split_on_cjk,
            )
        theirs.save_assets(str(folder))
        if hasattr(theirs, "merges"):
            (folder / "vocabulary.json").rename(folder / "vocab.json")
            return ByteLevelTokenizer.from_files(folder / "vocab.json", folder / "merges.txt")
        if hasattr(theirs, "proto"):
            known: dict[str, type[SentencePieceTokenizer]] = {
                "XLMRobertaTokenizer": XlmRobertaTokenizer,
                "DebertaV3Tokenizer": DebertaTokenizer,
            }
            kind = known.get(type(theirs).__name__, SentencePieceTokenizer)
            lower_case = kind is SentencePieceTokenizer
            return kind.from_model(folder / "vocabulary.spm", None, lower_case, False)
    raise CheckpointError(f"A {type(theirs).__name__} is not read; give a WordPiece, byte-level or SentencePiece one.")


def backbone_tensors(backbone: Any, config: BertConfig) -> dict[str, np.ndarray]:
    """The values of a backbone's weights.

    Returns:
        dict of canonical name -> float32 array in Hugging Face's orientation.
    """
    tensors = {}
    shapes = _shapes(config)
    for name, (layer, index) in _layers(backbone, config).items():
        value, shape = _value(layer, index), shapes[name]
        if name == _POSITIONS:
            value = np.pad(value, ((config.position_offset, 0), (0, 0)))
        tensors[name] = value.reshape(shape[::-1]).T if is_transposed(name) else value.reshape(shape)
    for name in shapes.keys() - tensors.keys():  # the one segment of RoBERTa, which its backbone does not have
        tensors[name] = np.zeros(shapes[name], np.float32)
    return tensors


def make_backbone(config: BertConfig, tensors: Mapping[str, np.ndarray]) -> Any:
    """A backbone of keras_nlp with these weights, activation and epsilon.

    Args:
        config: `BertConfig`.
        tensors: dict of canonical name -> array in Hugging Face's orientation.

    Returns:
        `keras_nlp.models.BertBackbone`, or that of the architecture.

    Raises:
        CheckpointError: keras_nlp has no backbone for this architecture, or its backbone has no place for the segments.
    """
    from bert_tf.layers.common import activation

    models = keras_nlp_models()
    record = BACKBONES.get(config.model_type)
    if record is None:
        raise CheckpointError(f"keras_nlp has no backbone for {config.architecture.with_article} model.")
    values = {name: getattr(config, setting) for name, setting in _settings_of(config.model_type).items()}
    if SETTINGS["max_sequence_length"] == _settings_of(config.model_type)["max_sequence_length"]:
        values["max_sequence_length"] = config.max_tokens
    if values.get("num_segments") == 0:
        raise CheckpointError(
            f"A {record.prefix}Backbone of keras_nlp always has segments, and this model has none (type_vocab_size 0); "
            "write the format 'own'."
        )
    if "embedding_dim" in values:
        values["embedding_dim"] = config.embedding_width
    if "num_groups" in values:
        values["num_groups"] = len(set(config.layer_groups))
    backbone = getattr(models, f"{record.prefix}Backbone")(**values)
    adds_segment = config.type_vocab_size > 0 and not hasattr(backbone, "segment_embedding")
    if adds_segment and (config.type_vocab_size > 1 or not config.architecture.has_position_table):
        raise CheckpointError(
            f"A {record.prefix}Backbone of keras_nlp has no segments, and type_vocab_size is {config.type_vocab_size} "
            "in this model; write the format 'hf'."
        )
    for layer in _encoder_layers(backbone):
        layer._feedforward_intermediate_dense.activation = activation(config.hidden_act)
    for norm in _norms(backbone):
        norm.epsilon = config.layer_norm_eps
    for name, (layer, index) in _layers(backbone, config).items():
        if name not in tensors:
            layer.weights[index].assign(np.zeros(layer.weights[index].shape))  # a pooler that the model does not have
            continue
        value = tensors[name]
        if name == _POSITIONS:
            value = value[config.position_offset :]
            if adds_segment:
                value = value + tensors[_SEGMENT]  # the one segment of RoBERTa is part of every position
        variable = layer.weights[index]
        variable.assign((value.T if is_transposed(name) else value).reshape(variable.shape))
    return backbone


_POSITIONS = "bert.embeddings.position_embeddings.weight"
_SEGMENT = "bert.embeddings.token_type_embeddings.weight"


def _shapes(config):
    return tensor_shapes(config, ("pooler",) if BACKBONES[config.model_type].pooler else ())


def _encoder_layers(backbone):
    layers = backbone.transformer_layers
    return [layer[0] if isinstance(layer, (list, tuple)) else layer for layer in layers]


def _norms(backbone):
    parts = ("_self_attention_layer_norm", "_feedforward_layer_norm")
    relative = getattr(backbone, "relative_embeddings", None)
    return [
        backbone.embeddings_layer_norm,
        *([] if relative is None else [relative.layer_norm]),
        *(getattr(one, part) for one in _encoder_layers(backbone) for part in parts),
    ]


def _layers(backbone, config):
    """Canonical name -> (layer of the backbone, index of its variable), for the tensors that it has."""
    record = BACKBONES[config.model_type]
    path = record.embeddings
    tables = getattr(backbone, path) if path else backbone
    fixed: dict[str, Callable[[], Any]] = {
        "bert.embeddings.word_embeddings": lambda: tables.token_embedding,
        "bert.embeddings.position_embeddings": lambda: tables.position_embedding,
        "bert.embeddings.token_type_embeddings": lambda: backbone.segment_embedding,
        "bert.embeddings.LayerNorm": lambda: backbone.embeddings_layer_norm,
        "bert.encoder.rel_embeddings": lambda: backbone.relative_embeddings,
        "bert.encoder.rel_embeddings.LayerNorm": lambda: backbone.relative_embeddings.layer_norm,
        "bert.embeddings_project": lambda: backbone.embeddings_projection,
        "bert.pooler.dense": lambda: backbone.pooled_dense,
    }
    layers = _encoder_layers(backbone)
    places = {}
    for name in _shapes(config):
        stem, kind = name.rsplit(".", 1)
        if stem in fixed:
            if name == _SEGMENT and not hasattr(backbone, "segment_embedding"):
                continue
            layer = fixed[stem]()
        else:
            number, part = stem.removeprefix("bert.encoder.layer.").split(".", 1)
            layer = reduce(getattr, record.in_layer[part].split("/"), layers[int(number)])
        # A kernel, gamma or table is the first variable of its layer, a bias or beta the second.
        places[name] = layer, 0 if kind == "weight" else 1
    return places
