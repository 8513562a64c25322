"""keras_nlp (KerasHub) and models of this project: presets as a `Bert`, and a `Bert` as a live backbone or task."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.checkpoints.formats.keras_nlp_backbone import (
    BACKBONES,
    keras_nlp_models,
    make_backbone,
    open_with_keras_nlp,
)
from bert_tf.checkpoints.formats.kerashub import differences_note, write_own_entries
from bert_tf.checkpoints.stored_model import StoredModel
from bert_tf.checkpoints.tensor_names import heads_present
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, InputError, require_head
from bert_tf.files import atomic_folder, read_json, refuse_full_folder, system_errors, write_text
from bert_tf.runtime.weights import parameter
from bert_tf.tokenizers import Tokenizer
from bert_tf.tokenizers.byte_level_bpe import ByteLevelTokenizer
from bert_tf.tokenizers.sentence_piece import SentencePieceTokenizer

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert

#: The beginning of the name of a preset for `bert_tf.load`.
PRESET = "preset:"
TASKS = ("backbone", "masked_lm", "text_classifier")
_HEAD = "cls.predictions"


def stored_preset(preset: str) -> tuple[Any, Any, StoredModel]:
    """Read a preset by keras_nlp itself.

    Args:
        preset: str. As in `open_with_keras_nlp`.

    Returns:
        (`BertConfig`, tokenizer, `StoredModel`).
    """
    config, tokenizer, tensors = open_with_keras_nlp(preset)
    weights = {name: tensor.weight() for name, tensor in tensors.items()}
    return config, tokenizer, StoredModel(config, heads_present(weights), weights)


def to_keras_nlp(bert: Bert, task: str = "backbone") -> Any:
    """A live model of keras_nlp with the weights of a `Bert`; see `Bert.to_keras_nlp`."""
    if task not in TASKS:
        raise InputError(f"There is no task {task!r} of keras_nlp here; choose from {', '.join(TASKS)}.")
    config = bert.config
    _record(config)
    if task == "masked_lm":
        require_head(bert.heads, "mlm", bert.name)
        if not config.tie_word_embeddings:
            raise CheckpointError(f"{bert.name} has an output table of its own, which keras_nlp's head has not.")
    if task == "text_classifier":
        _check_classifier(bert)
    backbone = make_backbone(config, _encoder_tensors(bert))
    if task == "backbone":
        return backbone
    return (_masked_lm if task == "masked_lm" else _text_classifier)(bert, backbone)


def _record(config):
    if config.model_type not in BACKBONES:
        raise CheckpointError(f"keras_nlp has no backbone for {config.architecture.with_article} model.")
    return BACKBONES[config.model_type]


def write_preset(bert: Bert, target: Path, dtype: str = "float32") -> Path:
    """Write a preset of keras_nlp: a `TextClassifier`, a `MaskedLM` or, without their heads, a backbone.

    keras_nlp does not store the activation and the settings of a task; they stand in metadata.json, by which the preset
    is read here as the same model. Its card says what is to be set in keras_nlp.

    Args:
        bert: `Bert`. One of `BACKBONES`, with a vocabulary that keras_nlp's tokenizer can hold.
        target: Path. The folder to write; it must be missing or empty.
        dtype: str. "float32"; "int8" stores the backbone's matrices in eight bits by Keras' own quantization.

    Returns:
        Path of the folder.

    Raises:
        CheckpointError: keras_nlp is not installed or cannot hold this model, or the folder is not empty.
    """
    config, settings = bert.config, bert.task.settings if bert.task is not None else None
    if dtype not in ("float32", "int8"):
        raise CheckpointError(f"The format 'keras-nlp' is written as float32 or int8, not {dtype}.")
    refuse_full_folder(target)
    epsilon = config.architecture.defaults.get("layer_norm_eps", BertConfig.layer_norm_eps)
    if config.layer_norm_eps != epsilon:
        raise CheckpointError(
            f"A backbone of keras_nlp has layer_norm_eps {epsilon}, and this model has {config.layer_norm_eps}."
        )
    if config.hidden_act not in ("gelu", "gelu_new"):
        raise CheckpointError(f"A backbone of keras_nlp computes GELU, and this model computes {config.hidden_act!r}.")
    has_mlm = (
        "mlm" in bert.heads
        and config.tie_word_embeddings
        and hasattr(keras_nlp_models(), f"{_record(config).prefix}MaskedLM")
    )
    task = "text_classifier" if settings is not None else "masked_lm" if has_mlm else "backbone"
    model = to_keras_nlp(bert, task)
    tokenizer = _tokenizer(bert) or _tokenizer_of_pieces(bert)
    if tokenizer is None or tokenizer.vocabulary_size() > config.vocab_size:
        raise CheckpointError(
            f"{bert.name} is not written as a preset, because keras_nlp has no tokenizer with its vocabulary; "
            "take the live model (`bert.to_keras_nlp()`) and give it the ids of `bert.tokenizer`."
        )
    if dtype == "int8":
        from bert_tf.runtime.eight_bit_model import existing_objects_frozen

        with warnings.catch_warnings(), existing_objects_frozen():
            # Layers without matrices have no eight bits.
            warnings.filterwarnings("ignore", message=".*does not have a `quantize` method")
            (model if task == "backbone" else model.backbone).quantize("int8")
    with atomic_folder(target) as folder:
        with system_errors(folder, OSError):
            model.save_to_preset(str(folder))
            tokenizer.save_to_preset(str(folder))
        entries: dict[str, Any] = {} if settings is None else {"task": settings.to_dict()}
        if _lacks_pooler(bert):
            entries["pooler"] = False
        write_own_entries(folder, hidden_act=config.hidden_act, **entries)
        write_text(folder / "README.md", _card(bert, model, dtype))
    return target


def _card(bert, model, dtype):
    kind, load = type(model).__name__, "from_preset(folder)"
    if dtype == "int8" and kind.endswith("Backbone"):
        load = 'from_preset(folder, dtype=json.load(open(folder + "/config.json"))["config"]["dtype"])'
    note = differences_note(bert.config, bert.tokenizer)
    if _lacks_pooler(bert):
        note += f" This model has no pooler: the one of the {_record(bert.config).prefix}Backbone holds zeros."
    return (
        f"---\nlibrary_name: keras-hub\n---\n\nA {bert.config.architecture.title} model as a KerasHub preset: "
        f"`keras_hub.models.{kind}.{load}`.\n\n{note}\n"
    )


def _lacks_pooler(bert):
    """Whether keras_nlp's backbone has a pooler and the model has none."""
    return _record(bert.config).pooler and "pooler" not in bert.heads


def _encoder_tensors(bert):
    from bert_tf.checkpoints.tensor_names import tensor_shapes

    heads = ("pooler",) if "pooler" in bert.heads else ()
    return {name: _value(bert, name) for name in tensor_shapes(bert.config, heads)}


def _value(bert, name):
    return np.ascontiguousarray(parameter(bert.weights, name).float32())


def _class(config, ending):
    models, name = keras_nlp_models(), f"{BACKBONES[config.model_type].prefix}{ending}"
    if not hasattr(models, name):
        raise CheckpointError(f"keras_nlp has no {name}; use the backbone with a head of your own.")
    return getattr(models, name)


def _tokenizer_class(bert, kind):
    """keras_nlp's tokenizer class of the architecture, or None if it is no `keras_nlp.tokenizers` of this kind."""
    import keras_nlp

    theirs = _class(bert.config, "Tokenizer")
    return theirs if issubclass(theirs, getattr(keras_nlp.tokenizers, kind)) else None


def _preprocessor(bert, ending):
    """keras_nlp's preprocessor with our WordPiece vocabulary; None for other tokenizers, whose ids are given."""
    theirs = _tokenizer(bert)
    if theirs is None:
        return None
    return _class(bert.config, f"{ending}Preprocessor")(theirs, sequence_length=min(128, bert.max_length))


def _tokenizer(bert):
    """keras_nlp's WordPiece tokenizer with our vocabulary; None for another kind, of theirs or ours."""
    tokenizer, theirs = bert.tokenizer, _tokenizer_class(bert, "WordPieceTokenizer")
    if theirs is None or not isinstance(tokenizer, Tokenizer) or tokenizer.pipeline is not None:
        return None
    made = theirs(
        vocabulary=list(tokenizer.vocab[: tokenizer.token_count]),
        lowercase=tokenizer.lower_case,
        strip_accents=tokenizer.strips_accents,
        split_on_cjk=tokenizer.tokenize_chinese_chars,
        special_tokens_in_strings=True,
    )
    if not made.split_on_cjk:  # KerasHub reads this setting from a preset, but does not write it
        settings = made.get_config
        made.get_config = lambda: {**settings(), "split_on_cjk": False}
    return made


def _tokenizer_of_pieces(bert):
    """keras_nlp's byte-level or SentencePiece tokenizer with our vocabulary; None as `_tokenizer`."""
    tokenizer = bert.tokenizer
    with tempfile.TemporaryDirectory() as name:
        if type(tokenizer) is ByteLevelTokenizer and (theirs := _tokenizer_class(bert, "BytePairTokenizer")):
            tokenizer.save(name)
            words = read_json(Path(name) / "vocab.json")
            lines = (Path(name) / "merges.txt").read_text(encoding="utf-8").splitlines()
            merges = [line for line in lines if line and not line.startswith("#version")]
            return theirs(vocabulary=words, merges=merges)
        if isinstance(tokenizer, SentencePieceTokenizer) and (
            theirs := _tokenizer_class(bert, "SentencePieceTokenizer")
        ):
            tokenizer.save(name)
            model = Path(name) / tokenizer.model_file
            return theirs(proto=model.read_bytes()) if model.is_file() else None
    return None


def _masked_lm(bert, backbone):
    from bert_tf.layers.common import activation

    model = _class(bert.config, "MaskedLM")(backbone, preprocessor=_preprocessor(bert, "MaskedLM"))
    head = model.masked_lm_head
    head._intermediate_dense.activation = activation(bert.config.mlm_act)
    head._intermediate_layer_norm.epsilon = bert.config.layer_norm_eps
    head._intermediate_dense.kernel.assign(_value(bert, f"{_HEAD}.transform.dense.weight").T)
    head._intermediate_dense.bias.assign(_value(bert, f"{_HEAD}.transform.dense.bias"))
    head._intermediate_layer_norm.gamma.assign(_value(bert, f"{_HEAD}.transform.LayerNorm.weight"))
    head._intermediate_layer_norm.beta.assign(_value(bert, f"{_HEAD}.transform.LayerNorm.bias"))
    head._bias.assign(_value(bert, f"{_HEAD}.bias"))
    return model


def _check_classifier(bert):
    settings = bert.task.settings if bert.task is not None else None
    if settings is None or settings.task != "classify" or settings.pooling != "cls":
        raise CheckpointError(
            f"{bert.name} is no classifier that reads the first token (`finetune classify --pooling cls`), which "
            "keras_nlp's text classifiers are. Convert its base model, or take another format; in Python, "
            "task='backbone' or 'masked_lm'."
        )


def _text_classifier(bert, backbone):
    head = bert.task.network.head
    outputs = head.classifier.units
    model = _class(bert.config, "TextClassifier")(
        backbone, num_classes=outputs, preprocessor=_preprocessor(bert, "TextClassifier")
    )
    first = getattr(model, "pooled_dense", None)
    if first is not None:  # the layer on the first token is a part of their classifier
        own = head.first.dense if head.first is not None else bert.model.bert_layers["pooler"].dense
        first.kernel.assign(own.kernel)
        first.bias.assign(own.bias)
        first.activation = own.activation
    model.output_dense.kernel.assign(head.classifier.kernel)
    model.output_dense.bias.assign(head.classifier.bias)
    return model
