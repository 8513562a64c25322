"""BERT and its family as Keras functional models with named inputs and outputs; several views of one set of
weights.

B batch, T tokens, P predicted positions, H hidden size, E embedding size (H in BERT), L layers, N heads,
D head size, V vocabulary.

Inputs (int32): `token_ids` [B, T], `segment_ids` [B, T], `padding_mask` [B, T] (1 real, 0 padding) and, where
`mlm_logits` is asked for, `mask_positions` [B, P].

Outputs, each computed only when asked for:

- `sequence_output` [B, T, H] (last hidden state), `pooled_output` [B, H]
- `mlm_logits` [B, P, V], `mlm_logits_all` [B, T, V], `nsp_logits` [B, 2] (0 IsNext, 1 NotNext),
  `sop_logits` [B, 2] (0 in order, 1 swapped), `replaced_logits` [B, T] (above 0: replaced), all float32
- `embeddings_sum` [B, T, E] (token + segment + position), `embeddings` [B, T, H] (normalised, projected to H)
- `hidden_states`: list of L + 1 [B, T, H], the embeddings first
- `attentions`: list of L [B, N, T, T], probabilities
- `queries`, `keys`, `values`: list of L [B, N, T, D]

Source: Devlin et al. 2019, sections 3 and 3.1.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import keras

from bert_tf.config import BertConfig
from bert_tf.layers import (
    BertEmbeddings,
    BetweenHead,
    EncoderLayer,
    LeftLayer,
    MaskedLMHead,
    NextSentenceHead,
    NextTokenHead,
    Pooler,
    ReplacedTokenHead,
    SharedEmbeddings,
    TwoOneWayLayer,
)
from bert_tf.layers.attention import MASKED_SCORE
from bert_tf.layers.common import named_dense, register

#: BERT's own pre-training heads.
HEADS = ("pooler", "mlm", "nsp")
ALL_HEADS = (*HEADS, "sop", "replaced")
PER_LAYER = ("attentions", "queries", "keys", "values")
OUTPUTS = (
    "sequence_output",
    "pooled_output",
    "mlm_logits",
    "mlm_logits_all",
    "nsp_logits",
    "sop_logits",
    "replaced_logits",
    "embeddings_sum",
    "embeddings",
    "hidden_states",
    *PER_LAYER,
)
#: What a model is built of by `Member.reads`: embeddings, encoder layer, masked-LM head.
READING = {
    "both": (BertEmbeddings, EncoderLayer, MaskedLMHead),
    "left": (BertEmbeddings, LeftLayer, NextTokenHead),
    "apart": (SharedEmbeddings, TwoOneWayLayer, BetweenHead),
}
#: Heads that an output needs.
NEEDS = {
    "pooled_output": ("pooler",),
    "nsp_logits": ("pooler", "nsp"),
    "mlm_logits": ("mlm",),
    "mlm_logits_all": ("mlm",),
    "sop_logits": ("pooler", "sop"),
    "replaced_logits": ("replaced",),
}


@register
class PaddingBias(keras.layers.Layer):
    """The additive attention mask: padding_mask int32 [B, T] -> [B, 1, 1, T], 0 or `MASKED_SCORE`."""

    def call(self, padding_mask: Any) -> Any:
        hidden = 1 - keras.ops.cast(padding_mask, self.compute_dtype)
        return keras.ops.expand_dims(hidden * MASKED_SCORE, (1, 2))


@register
class BertModel(keras.Model):
    """A functional BERT; made by `build_encoder`, `build_pretraining_model` or `view`.

    Attributes:
        bert_config: its `BertConfig`.
        bert_heads: frozenset out of `ALL_HEADS`: the heads it has weights for.
        bert_layers: name -> layer, all of them, also those that no output of this view needs; layers that
            share their weights are the same object.
    """

    def __init__(self, bert_config, outputs, heads=(), layers=None, **kwargs):
        if isinstance(bert_config, dict):
            bert_config = BertConfig.from_dict(bert_config)
        heads = frozenset(heads)
        _check_outputs(outputs, heads)
        layers = layers or _make_layers(bert_config, heads, kwargs.get("dtype"))
        inputs, results = _connect(layers, outputs)
        super().__init__(inputs=inputs, outputs=results, **kwargs)
        self.bert_config, self.bert_heads = bert_config, heads
        self._output_choice = tuple(outputs)
        # In a closure, so that Keras counts only the layers that this view's outputs use.
        self._all_layers = lambda: layers

    @property
    def bert_layers(self) -> dict[str, keras.layers.Layer]:
        return self._all_layers()

    def _run_through_graph(self, inputs, operation_fn=lambda op: op, call_fn=None):
        # `call_fn` is given only by Keras' check at construction, which takes it that a shared layer gives as many
        # tensors each time as on its first call; these give their maps only to the views that ask for them.
        if call_fn is None:
            return super()._run_through_graph(inputs, operation_fn)

    def get_config(self) -> dict[str, Any]:
        # Functional's own config lists every layer; the settings say the same in a few lines.
        return {
            "bert_config": self.bert_config.to_dict(),
            "outputs": list(self._output_choice),
            "heads": sorted(self.bert_heads),
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.bert_layers["embeddings"].dtype_policy),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> "BertModel":
        return cls(**config)


def build_encoder(
    config: BertConfig,
    outputs: Sequence[str] = ("sequence_output", "pooled_output"),
    dtype: Any = None,
    name: str = "bert_encoder",
) -> BertModel:
    """The encoder, with a pooler if `pooled_output` is among the outputs.

    Args:
        config: a `BertConfig`. outputs: names from this module's docstring. dtype: Keras dtype or policy.

    Returns: a `BertModel`.

    Raises:
        ValueError: on an unknown output, or one that needs a head this model has not.
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
    """The encoder with the heads that its pre-training trains (BERT: pooler, MLM and NSP), or other `heads`.

    Args and errors as in `build_encoder`; `outputs` None for the logits of all these heads. `mlm_logits` are
    at the `mask_positions` asked for only; `mlm_logits_all` at every token.
    """
    heads = config.member.trained if heads is None else heads
    outputs = outputs or [f"{head}_logits" for head in heads if head != "pooler"]
    return BertModel(config, outputs, heads, dtype=dtype, name=name)


def view(model: BertModel, outputs: Sequence[str], name: str | None = None) -> BertModel:
    """Another model over the very layers and weights of `model`, with other outputs. Nothing is copied.

    Args:
        model: a `BertModel`. outputs: names from this module's docstring.
    """
    return BertModel(
        model.bert_config, tuple(outputs), model.bert_heads, layers=model.bert_layers, name=name or f"{model.name}_view"
    )


def _check_outputs(outputs, heads):
    if not outputs:
        raise ValueError(f"No outputs asked for; choose from {', '.join(OUTPUTS)}.")
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
    embeddings, layer, masked_head = READING[config.member.reads]
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
            config.hidden_act,
            epsilon,
            stddev,
            config.embedding_width,
            dtype=dtype,
            name="mlm",
        )
    for head in ("nsp", "sop"):
        if head in heads:
            layers[head] = NextSentenceHead(stddev, dtype=dtype, name=head)
    if "replaced" in heads:
        layers["replaced"] = ReplacedTokenHead(
            config.hidden_size, config.hidden_act, stddev, dtype=dtype, name="replaced"
        )
    _build(layers, config)
    return layers


def _encoder_layers(config, layer, dtype):
    """ "layer_0" to "layer_{L-1}"; those of one group are one layer."""
    groups, layers = {}, {}
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
                dtype=dtype,
                name=f"layer_{group}",
            )
        layers[f"layer_{index}"] = groups[group]
    return layers


def _build(layers, config):
    """Creates every variable now, so that a layer no output uses yet has its weights too."""
    hidden = (None, None, config.hidden_size)
    for name, layer in layers.items():
        if not layer.built:
            layer.build((None, config.hidden_size) if name in ("nsp", "sop") else hidden)


def _connect(layers, outputs):
    """The functional graph from the inputs to just the outputs asked for."""
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name) for name in ("token_ids", "segment_ids", "padding_mask")
    }
    found = layers["embeddings"](inputs["token_ids"], inputs["segment_ids"])
    bias = layers["padding_bias"](inputs["padding_mask"])
    details = [name for name in PER_LAYER if name in outputs]
    x = found["embeddings"]
    results = {
        "embeddings": x,
        "embeddings_sum": found["embeddings_sum"],
        "hidden_states": [x],
        **{name: [] for name in details},
    }
    for layer in (layer for name, layer in layers.items() if name.startswith("layer_")):
        if details:
            x, maps = layer(x, bias, details=details)
            for name in details:
                results[name].append(maps[name])
        else:
            x = layer(x, bias)
        results["hidden_states"].append(x)
    results["sequence_output"] = x
    if "mlm_logits" in outputs:
        inputs["mask_positions"] = keras.Input((None,), dtype="int32", name="mask_positions")
        results["mlm_logits"] = layers["mlm"](x, found["token_table"], inputs["mask_positions"])
    if "mlm_logits_all" in outputs:
        results["mlm_logits_all"] = layers["mlm"](x, found["token_table"])
    if any("pooler" in NEEDS.get(output, ()) for output in outputs):
        results["pooled_output"] = layers["pooler"](x)
    for head in ("nsp", "sop"):
        if f"{head}_logits" in outputs:
            results[f"{head}_logits"] = layers[head](results["pooled_output"])
    if "replaced_logits" in outputs:
        results["replaced_logits"] = layers["replaced"](x)
    return inputs, {name: results[name] for name in outputs}


def named_variables(model: BertModel) -> dict[str, keras.Variable]:
    """Every variable of a `BertModel` under the name that Hugging Face's BertForPreTraining gives it.

    The names are the same in the whole family; `Member.stored_name` gives those of each member's own files.

    Returns: dict name -> `keras.Variable`; Dense kernels are [in, out] here, [out, in] there
        (see `is_transposed`).
    """
    layers = model.bert_layers
    found = _embedding_variables(layers["embeddings"])
    for index, group in enumerate(model.bert_config.layer_groups):
        found.update(_layer_variables(f"bert.encoder.layer.{group}", layers[f"layer_{index}"]))
    if "pooler" in layers:
        found.update(named_dense("bert.pooler.dense", layers["pooler"].dense))
    if "mlm" in layers:
        head = layers["mlm"]
        found.update(named_dense("cls.predictions.transform.dense", head.transform))
        found.update(_norm("cls.predictions.transform.LayerNorm", head.norm))
        found["cls.predictions.bias"] = head.bias
    if "nsp" in layers:
        found.update(named_dense("cls.seq_relationship", layers["nsp"].dense))
    if "sop" in layers:
        found.update(named_dense("sop_classifier.classifier", layers["sop"].dense))
    if "replaced" in layers:
        found.update(named_dense("discriminator_predictions.dense", layers["replaced"].transform))
        found.update(named_dense("discriminator_predictions.dense_prediction", layers["replaced"].score))
    return found


def is_transposed(name: str) -> bool:
    """Whether the variable of this name (see `named_variables`) is the transpose of Hugging Face's tensor."""
    return name.endswith(".weight") and not name.startswith("bert.embeddings.") and "LayerNorm" not in name


def _norm(name, layer):
    return {f"{name}.weight": layer.gamma, f"{name}.bias": layer.beta}


def _embedding_variables(layer):
    name = "bert.embeddings"
    found = {
        f"{name}.word_embeddings.weight": layer.token_table,
        f"{name}.position_embeddings.weight": layer.position_table,
        f"{name}.token_type_embeddings.weight": layer.segment_table,
        **_norm(f"{name}.LayerNorm", layer.norm),
    }
    if layer.projection is not None:
        found.update(named_dense("bert.embeddings_project", layer.projection))
    return {name: variable for name, variable in found.items() if variable is not None}


def _layer_variables(name, layer):
    if len(layer.side_by_side()) > 1:
        return {
            key: variable
            for stack in layer.side_by_side()
            for key, variable in _layer_variables(f"{name}.{stack.name}", stack).items()
        }
    attention, feed_forward = layer.attention, layer.feed_forward
    return {
        **named_dense(f"{name}.attention.self.query", attention.query),
        **named_dense(f"{name}.attention.self.key", attention.key),
        **named_dense(f"{name}.attention.self.value", attention.value),
        **named_dense(f"{name}.attention.output.dense", attention.output_dense),
        **_norm(f"{name}.attention.output.LayerNorm", layer.attention_norm),
        **named_dense(f"{name}.intermediate.dense", feed_forward.intermediate),
        **named_dense(f"{name}.output.dense", feed_forward.output_dense),
        **_norm(f"{name}.output.LayerNorm", layer.feed_forward_norm),
    }
