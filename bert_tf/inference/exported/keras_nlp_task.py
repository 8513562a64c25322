"""keras_nlp (KerasHub) and models of this project: presets as a `Bert`, and a `Bert` as a live backbone or task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.checkpoints.formats.keras_nlp_backbone import (
    BACKBONES,
    keras_nlp_models,
    make_backbone,
    open_with_keras_nlp,
)
from bert_tf.checkpoints.stored_model import StoredModel
from bert_tf.checkpoints.tensor_names import heads_present
from bert_tf.errors import CheckpointError, InputError, require_head
from bert_tf.runtime.weights import parameter
from bert_tf.tokenizers import Tokenizer

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
    if config.model_type not in BACKBONES:
        raise CheckpointError(f"keras_nlp has no backbone for a {config.architecture.title} model.")
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


def _preprocessor(bert, ending):
    """keras_nlp's preprocessor with our WordPiece vocabulary; None for other tokenizers, whose ids are given."""
    tokenizer = bert.tokenizer
    if not isinstance(tokenizer, Tokenizer) or tokenizer.pipeline is not None:
        return None
    strip = tokenizer.lower_case if tokenizer.strip_accents is None else tokenizer.strip_accents
    theirs = _class(bert.config, "Tokenizer")(
        vocabulary=list(tokenizer.vocab[: tokenizer.token_count]),
        lowercase=tokenizer.lower_case,
        strip_accents=strip,
        special_tokens_in_strings=True,
    )
    return _class(bert.config, f"{ending}Preprocessor")(theirs, sequence_length=min(128, bert.max_length))


def _masked_lm(bert, backbone):
    from bert_tf.layers.common import activation

    model = _class(bert.config, "MaskedLM")(backbone, preprocessor=_preprocessor(bert, "MaskedLM"))
    head = model.masked_lm_head
    head._intermediate_dense.activation = activation(bert.config.hidden_act)
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
            "keras_nlp's text classifiers are; take the backbone, or task='masked_lm'."
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
