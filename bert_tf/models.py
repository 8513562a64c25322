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

import importlib
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import keras

from bert_tf.config import BertConfig
from bert_tf.layers import NextSentenceHead, Pooler, ReplacedTokenHead
from bert_tf.layers.attention import MASKED_SCORE
from bert_tf.layers.common import register
from bert_tf.parameters import parameter_spec

#: BERT's own pre-training heads.
HEADS = ("pooler", "mlm", "nsp")
ALL_HEADS = (*HEADS, "sop", "replaced")
#: Output, a list of L tensors -> the hook point of each layer that it is taken at.
PER_LAYER = {"attentions": "pattern", "queries": "q", "keys": "k", "values": "v"}
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
    heads = config.architecture.trained if heads is None else heads
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


def _class(path):
    """The class of a dotted path such as "bert_tf.layers.encoder.EncoderLayer"."""
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


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
    points = {output: point for output, point in PER_LAYER.items() if output in outputs}
    x = found["embeddings"]
    results = {
        "embeddings": x,
        "embeddings_sum": found["embeddings_sum"],
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

    The names are the same in the whole family; `Architecture.stored_name` gives those of each architecture's own files.

    Returns: dict name -> `keras.Variable`, in the order of `parameter_spec`; Dense kernels are [in, out] here,
        [out, in] there (see `is_transposed`).
    """
    return {
        parameter.name: attrgetter(parameter.attribute)(model.bert_layers[parameter.layer])
        for parameter in parameter_spec(model.bert_config, model.bert_heads)
    }
