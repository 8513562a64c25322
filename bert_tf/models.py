"""BERT and the related architectures as Keras functional models with named inputs and outputs.

Several models ("views") can share one set of weights.

B batch, T tokens, P predicted positions, H hidden size, E embedding size (H in BERT), L layers, N heads,
D head size, V vocabulary.

Inputs and outputs are those of `bert_tf.model_outputs`; an output is computed only if it is requested.

Source: Devlin et al. 2019, sections 3 and 3.1.
"""

import importlib
import math
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import keras
import ml_dtypes  # noqa: F401  this import adds bfloat16 to NumPy
import numpy as np

from bert_tf.config import BertConfig
from bert_tf.layers.common import register
from bert_tf.layers.heads import NextSentenceHead, ReplacedTokenHead
from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.layers.pooler import Pooler
from bert_tf.model_outputs import INPUTS, NEEDS, OUTPUTS, PER_LAYER
from bert_tf.parameters import parameter_spec

#: The outputs that are lists of one array for each layer.
_OF_LAYERS = frozenset({"hidden_states", *PER_LAYER})


@register
class PaddingBias(keras.layers.Layer):
    """The additive attention mask: padding_mask int32 [B, T] -> [B, 1, 1, T], 0 or `MASKED_SCORE`."""

    def call(self, padding_mask: Any) -> Any:
        """Return the additive mask [B, 1, 1, T] of a padding mask int32 [B, T]."""
        is_padding = 1 - keras.ops.cast(padding_mask, self.compute_dtype)
        return keras.ops.expand_dims(is_padding * MASKED_SCORE, (1, 2))


@register
class BertModel(keras.Model):
    """A functional BERT model, created by `build_encoder`, `build_pretraining_model` or `view`.

    Attributes:
        bert_config: `BertConfig`. The settings.
        bert_heads: frozenset of str. The heads that have weights, some of `ALL_HEADS`.
        bert_layers: dict of name -> layer. All layers, with those that no output of this view needs. Layers that
            share their weights are the same object.

    Example:
        >>> model = build_encoder(BertConfig.tiny(vocab_size=100), outputs=("sequence_output",))
        >>> ids = np.ones((1, 3), "int32")
        >>> model({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids})["sequence_output"].shape
        TensorShape([1, 3, 128])
    """

    def __init__(
        self,
        bert_config: BertConfig | dict[str, Any],
        outputs: Sequence[str],
        heads: Iterable[str] = (),
        layers: dict[str, keras.layers.Layer] | None = None,
        **kwargs: Any,
    ) -> None:
        if isinstance(bert_config, dict):
            bert_config = BertConfig.from_dict(bert_config)
        heads = frozenset(heads)
        _check_outputs(outputs, heads)
        layers = layers or _make_layers(bert_config, heads, kwargs.get("dtype"))
        inputs, results = _connect(layers, outputs)
        super().__init__(inputs=inputs, outputs=results, **kwargs)
        self.bert_config, self.bert_heads = bert_config, heads
        self._output_choice = tuple(outputs)
        # A closure hides the layers from Keras, so that it counts only the layers that this view's outputs use.
        self._all_layers = lambda: layers

    @property
    def bert_layers(self) -> dict[str, keras.layers.Layer]:
        """All layers by name; layers that share their weights are the same object."""
        return self._all_layers()

    @property
    def nbytes(self) -> int:
        """The bytes of all weights in memory."""
        return sum(np.dtype(v.dtype).itemsize * math.prod(v.shape) for v in named_variables(self).values())

    def export(self, filepath: Any, format: str = "tf_saved_model", **options: Any) -> None:
        """Write the model as `keras.Model.export` does.

        In a SavedModel each layer's part of an output such as "attentions" has a name of its own: "attentions_0" to
        "attentions_L-1".

        Raises:
            ValueError: Keras runs on another backend than TensorFlow, where it writes no SavedModel of a model with
                named inputs.
        """
        backend = keras.backend.backend()
        if format == "tf_saved_model" and backend != "tensorflow":
            raise ValueError(
                f"Keras runs on {backend!r}, where it writes no SavedModel of a model with named inputs: set "
                "KERAS_BACKEND=tensorflow, or write ONNX or OpenVINO with `python -m bert_tf convert --to onnx`."
            )
        if format == "tf_saved_model" and any(name in _OF_LAYERS for name in self._output_choice):
            _export_of_layers(self, filepath, **options)
        else:
            super().export(filepath, format=format, **options)

    def _run_through_graph(self, inputs, operation_fn=lambda op: op, call_fn=None):
        # Only Keras' check at construction passes `call_fn`. The check assumes that every call of a shared layer
        # returns as many tensors as the first call, but these layers return attention maps only if requested.
        if call_fn is None:
            return super()._run_through_graph(inputs, operation_fn)

    def get_config(self) -> dict[str, Any]:
        """Return the settings, outputs, heads, name and dtype, from which Keras recreates the model."""
        # The config of `keras.Functional` would list every layer instead.
        return {
            "bert_config": self.bert_config.to_dict(),
            "outputs": list(self._output_choice),
            "heads": sorted(self.bert_heads),
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.bert_layers["embeddings"].dtype_policy),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> "BertModel":
        """Create a model from the result of `get_config`."""
        return cls(**config)


def _export_of_layers(model: BertModel, filepath: Any, verbose: bool | None = None, **options: Any) -> None:
    """Write a SavedModel of a view whose outputs are partly lists, which a signature of TensorFlow cannot have."""
    import tensorflow as tf

    def serve(batch):
        outputs = {}
        for name, value in model(batch, training=False).items():
            parts = value if isinstance(value, (list, tuple)) else [value]
            outputs.update({f"{name}_{index}" if name in _OF_LAYERS else name: x for index, x in enumerate(parts)})
        return outputs

    inputs = {name: tf.TensorSpec((None, None), tf.int32, name) for name in model.input}
    signature = options.pop("input_signature", None) or [inputs]
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", serve, input_signature=signature, **options)
    archive.write_out(str(filepath), verbose=verbose)


def build_encoder(
    config: BertConfig,
    outputs: Sequence[str] = ("sequence_output", "pooled_output"),
    dtype: Any = None,
    name: str = "bert_encoder",
) -> BertModel:
    """Build the encoder, with a pooler if `pooled_output` is one of the outputs.

    Args:
        config: `BertConfig`. The settings.
        outputs: sequence of str. Names from `bert_tf.model_outputs`.
        dtype: str or `keras.DTypePolicy` or None. The dtype or dtype policy.
        name: str. The name of the model.

    Returns:
        `BertModel`.

    Raises:
        ValueError: an output is unknown, or needs a head that the model does not have.
    """
    heads = ("pooler",) if "pooled_output" in outputs else ()
    return BertModel(config, outputs, heads, dtype=dtype, name=name)


def build_pretraining_model(
    config: BertConfig,
    outputs: Sequence[str] | None = None,
    heads: Iterable[str] | None = None,
    dtype: Any = None,
    name: str = "bert_pretraining",
) -> BertModel:
    """Build the encoder with the heads that its pre-training trains (BERT: pooler, MLM and NSP), or other heads.

    Args:
        config: `BertConfig`. The settings.
        outputs: sequence of str or None. Names from `bert_tf.model_outputs`; None for the logits of all heads.
            `mlm_logits` are computed at the `mask_positions` only, `mlm_logits_all` at every token.
        heads: iterable of str or None. Some of `ALL_HEADS`; None for the heads of the architecture's pre-training.
        dtype: str or `keras.DTypePolicy` or None. The dtype or dtype policy.
        name: str. The name of the model.

    Returns:
        `BertModel`.

    Raises:
        ValueError: an output is unknown, or needs a head that the model does not have.
    """
    heads = config.architecture.trained if heads is None else tuple(heads)
    outputs = outputs or [f"{head}_logits" for head in heads if head != "pooler"]
    return BertModel(config, outputs, heads, dtype=dtype, name=name)


def view(model: BertModel, outputs: Sequence[str], name: str | None = None) -> BertModel:
    """Build a model with other outputs over the layers and weights of `model`. No weight is copied.

    Args:
        model: `BertModel`. The model whose layers are used.
        outputs: sequence of str. Names from `bert_tf.model_outputs`.
        name: str or None. The name; None for the name of `model` with "_view".

    Returns:
        `BertModel`.

    Raises:
        ValueError: an output is unknown, or needs a head that the model does not have.
    """
    return BertModel(
        model.bert_config, outputs, model.bert_heads, layers=model.bert_layers, name=name or f"{model.name}_view"
    )


def _check_outputs(outputs, heads):
    if isinstance(outputs, str):
        raise ValueError(f"Give a tuple of outputs, such as ({outputs!r},), not one alone.")
    if not outputs:
        raise ValueError(f"No outputs are requested; choose from {', '.join(OUTPUTS)}.")
    for output in outputs:
        if output not in OUTPUTS:
            raise ValueError(f"There is no output {output!r}; choose from {', '.join(OUTPUTS)}.")
        missing = [head for head in NEEDS.get(output, ()) if head not in heads]
        if missing:
            raise ValueError(
                f"Output {output!r} needs the {' and '.join(missing)} head, which this model "
                f"does not have (it has: {', '.join(sorted(heads)) or 'none'})."
            )


def _make_layers(config, heads, dtype):
    stddev, epsilon = config.initializer_range, config.layer_norm_eps
    architecture = config.architecture
    embeddings, layer, masked_head = map(
        _class, (architecture.embeddings_class, architecture.layer_class, architecture.mlm_head_class)
    )
    layers = {
        "embeddings": embeddings(
            config.vocab_size,
            config.hidden_size,
            config.max_position_embeddings,
            config.type_vocab_size,
            config.hidden_dropout_prob,
            epsilon,
            stddev,
            config.embedding_width,
            config.position_offset,
            config.has_embedding_projection,
            dtype=dtype,
            name="embeddings",
        ),
        "padding_bias": PaddingBias(dtype=dtype, name="padding_bias"),
        **_encoder_layers(config, layer, dtype),
    }
    if "pooler" in heads:
        layers["pooler"] = Pooler(config.hidden_size, stddev, dtype=dtype, name="pooler")
    if "mlm" in heads:
        layers["mlm"] = masked_head(
            config.vocab_size,
            config.hidden_size,
            config.mlm_act,
            epsilon,
            stddev,
            config.embedding_width,
            **({} if config.tie_word_embeddings else {"tied": False}),
            dtype=dtype,
            name="mlm",
        )
    for head in ("nsp", "sop"):
        if head in heads:
            layers[head] = NextSentenceHead(stddev, dtype=dtype, name=head)
    if "replaced" in heads:
        layers["replaced"] = ReplacedTokenHead(
            config.hidden_size,
            config.hidden_act,
            stddev,
            epsilon if architecture.replaced_head_adds_first else None,
            dtype=dtype,
            name="replaced",
        )
    _build(layers, config)
    return layers


def _class(path):
    """The class with a dotted path such as "bert_tf.layers.encoder.EncoderLayer"."""
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def _encoder_layers(config, layer, dtype):
    """The layers by their names "layer_0" to "layer_{L-1}"; the layers of one group are the same object."""
    groups, layers = {}, {}
    shared: dict[str, Any] = {}
    for index, group in enumerate(config.layer_groups):
        if group not in groups:
            groups[group] = layer(
                config.hidden_size,
                config.num_attention_heads,
                config.intermediate_size,
                config.hidden_act,
                config.hidden_dropout_prob,
                config.attention_probs_dropout_prob,
                config.layer_norm_eps,
                config.initializer_range,
                **layer.settings_at(config, index),
                **shared,
                dtype=dtype,
                name=f"layer_{group}",
            )
            shared = groups[group].shared()
        layers[f"layer_{index}"] = groups[group]
    return layers


def _build(layers, config):
    """Create all variables, so that layers that no output uses also have their weights."""
    hidden = (None, None, config.hidden_size)
    for name, layer in layers.items():
        if not layer.built:
            layer.build((None, config.hidden_size) if name in ("nsp", "sop") else hidden)


def _connect(layers, outputs):
    """The functional graph from the inputs to the requested outputs."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in INPUTS}
    embedded = layers["embeddings"](inputs["token_ids"], inputs["segment_ids"])
    bias = layers["padding_bias"](inputs["padding_mask"])
    points = {output: point for output, point in PER_LAYER.items() if output in outputs}
    x = embedded["embeddings"]
    results = {
        "embeddings": x,
        "embeddings_sum": embedded["embeddings_sum"],
        "hidden_states": [x],
        **{output: [] for output in points},
    }
    for layer in (layer for name, layer in layers.items() if name.startswith("layer_")):
        if points:
            x, values = layer(x, bias, outputs=tuple(points.values()))
            for output, point in points.items():
                results[output].append(values[point])
        else:
            x = layer(x, bias)
        results["hidden_states"].append(x)
    results["sequence_output"] = x
    if "mlm_logits" in outputs:
        inputs["mask_positions"] = keras.Input((None,), dtype="int32", name="mask_positions")
        results["mlm_logits"] = layers["mlm"](x, embedded["token_table"], inputs["mask_positions"])
    if "mlm_logits_all" in outputs:
        results["mlm_logits_all"] = layers["mlm"](x, embedded["token_table"])
    if any("pooler" in NEEDS.get(output, ()) for output in outputs):
        results["pooled_output"] = layers["pooler"](x)
    for head in ("nsp", "sop"):
        if f"{head}_logits" in outputs:
            results[f"{head}_logits"] = layers[head](results["pooled_output"])
    if "replaced_logits" in outputs:
        results["replaced_logits"] = layers["replaced"](x)
    return inputs, {name: results[name] for name in outputs}


def named_variables(model: BertModel) -> dict[str, keras.Variable]:
    """Return the variables of a `BertModel` by their names in Hugging Face's BertForPreTraining.

    All architectures use these names; `Architecture.stored_name` returns the names in an architecture's files.

    Returns:
        Dict of name -> `keras.Variable`, in the order of `parameter_spec`. Dense kernels are [in, out] in Keras and
        [out, in] in Hugging Face's files (see `is_transposed`).
    """
    return {
        parameter.name: attrgetter(parameter.attribute)(model.bert_layers[parameter.layer])
        for parameter in parameter_spec(model.bert_config, model.bert_heads)
    }
