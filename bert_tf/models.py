"""BERT as Keras functional models with named inputs and outputs, and several views over one set of weights.

B batch, T tokens, P predicted positions, H hidden size, L layers, N heads, D head size, V vocabulary.

Inputs (int32): `token_ids` [B, T], `segment_ids` [B, T], `padding_mask` [B, T] (1 real, 0 padding) and, where
`mlm_logits` is asked for, `mask_positions` [B, P].

Outputs, each computed only when asked for:

- `sequence_output` [B, T, H] (last hidden state), `pooled_output` [B, H]
- `mlm_logits` [B, P, V], `mlm_logits_all` [B, T, V], `nsp_logits` [B, 2] (0 IsNext, 1 NotNext), all float32
- `embeddings_sum` [B, T, H] (token + segment + position), `embeddings` [B, T, H] (after its normalisation)
- `hidden_states`: list of L + 1 [B, T, H], the embeddings first
- `attentions`: list of L [B, N, T, T], probabilities
- `queries`, `keys`, `values`: list of L [B, N, T, D]

Source: Devlin et al. 2019, sections 3 and 3.1.
"""

import keras

from bert_tf.config import BertConfig
from bert_tf.layers import BertEmbeddings, EncoderLayer, MaskedLMHead, NextSentenceHead, Pooler
from bert_tf.layers.attention import MASKED_SCORE
from bert_tf.layers.common import register

HEADS = ("pooler", "mlm", "nsp")
PER_LAYER = ("attentions", "queries", "keys", "values")
OUTPUTS = ("sequence_output", "pooled_output", "mlm_logits", "mlm_logits_all", "nsp_logits", "embeddings_sum",
           "embeddings", "hidden_states", *PER_LAYER)
#: Heads that an output needs.
NEEDS = {"pooled_output": ("pooler",), "nsp_logits": ("pooler", "nsp"), "mlm_logits": ("mlm",),
         "mlm_logits_all": ("mlm",)}


@register
class PaddingBias(keras.layers.Layer):
    """The additive attention mask: padding_mask int32 [B, T] -> [B, 1, 1, T], 0 or `MASKED_SCORE`."""

    def call(self, padding_mask):
        hidden = 1 - keras.ops.cast(padding_mask, self.compute_dtype)
        return keras.ops.expand_dims(hidden * MASKED_SCORE, (1, 2))


@register
class BertModel(keras.Model):
    """A functional BERT; made by `build_encoder`, `build_pretraining_model` or `view`.

    Attributes:
        bert_config: its `BertConfig`.
        bert_heads: frozenset out of "pooler", "mlm", "nsp": the heads it has weights for.
        bert_layers: name -> layer, all of them, also those that no output of this view needs.
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
    def bert_layers(self):
        return self._all_layers()

    def _run_through_graph(self, inputs, operation_fn=lambda op: op, call_fn=None):
        # `call_fn` is given only by Keras' check at construction, which takes it that a shared layer gives as many
        # tensors each time as on its first call; these give their maps only to the views that ask for them.
        if call_fn is None:
            return super()._run_through_graph(inputs, operation_fn)

    def get_config(self):
        # Functional's own config lists every layer; the settings say the same in a few lines.
        return {"bert_config": self.bert_config.to_dict(), "outputs": list(self._output_choice),
                "heads": sorted(self.bert_heads), "name": self.name,
                "dtype": keras.dtype_policies.serialize(self.bert_layers["embeddings"].dtype_policy)}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def build_encoder(config, outputs=("sequence_output", "pooled_output"), dtype=None, name="bert_encoder"):
    """The encoder, with a pooler if `pooled_output` is among the outputs.

    Args:
        config: a `BertConfig`. outputs: names from this module's docstring. dtype: Keras dtype or policy.

    Returns: a `BertModel`.

    Raises:
        ValueError: on an unknown output, or one that needs a head this model has not.
    """
    heads = ("pooler",) if "pooled_output" in outputs else ()
    return BertModel(config, outputs, heads, dtype=dtype, name=name)


def build_pretraining_model(config, outputs=("mlm_logits", "nsp_logits"), heads=HEADS, dtype=None,
                            name="bert_pretraining"):
    """The encoder with its pooler and both pre-training heads (or fewer, by `heads`).

    Args and errors as in `build_encoder`. `mlm_logits` are at the `mask_positions` asked for only;
    `mlm_logits_all` at every token.
    """
    return BertModel(config, outputs, heads, dtype=dtype, name=name)


def view(model, outputs, name=None):
    """Another model over the very layers and weights of `model`, with other outputs. Nothing is copied.

    Args:
        model: a `BertModel`. outputs: names from this module's docstring.
    """
    return BertModel(model.bert_config, tuple(outputs), model.bert_heads, layers=model.bert_layers,
                     name=name or f"{model.name}_view")


def _check_outputs(outputs, heads):
    if not outputs:
        raise ValueError(f"No outputs asked for; choose from {', '.join(OUTPUTS)}.")
    for output in outputs:
        if output not in OUTPUTS:
            raise ValueError(f"There is no output {output!r}; choose from {', '.join(OUTPUTS)}.")
        missing = [head for head in NEEDS.get(output, ()) if head not in heads]
        if missing:
            raise ValueError(f"Output {output!r} needs the {' and '.join(missing)} head, which this model "
                             f"does not have (it has: {', '.join(sorted(heads)) or 'none'}).")


def _make_layers(config, heads, dtype):
    stddev, epsilon = config.initializer_range, config.layer_norm_eps
    layers = {
        "embeddings": BertEmbeddings(
            config.vocab_size, config.hidden_size, config.max_position_embeddings, config.type_vocab_size,
            config.hidden_dropout_prob, epsilon, stddev, dtype=dtype, name="embeddings"),
        "padding_bias": PaddingBias(dtype=dtype, name="padding_bias"),
    }
    for index in range(config.num_hidden_layers):
        layers[f"layer_{index}"] = EncoderLayer(
            config.hidden_size, config.num_attention_heads, config.intermediate_size, config.hidden_act,
            config.hidden_dropout_prob, config.attention_probs_dropout_prob, epsilon, stddev,
            dtype=dtype, name=f"layer_{index}")
    if "pooler" in heads:
        layers["pooler"] = Pooler(config.hidden_size, stddev, dtype=dtype, name="pooler")
    if "mlm" in heads:
        layers["mlm"] = MaskedLMHead(config.vocab_size, config.hidden_size, config.hidden_act, epsilon, stddev,
                                     dtype=dtype, name="mlm")
    if "nsp" in heads:
        layers["nsp"] = NextSentenceHead(stddev, dtype=dtype, name="nsp")
    _build(layers, config)
    return layers


def _build(layers, config):
    """Creates every variable now, so that a layer no output uses yet has its weights too."""
    hidden = (None, None, config.hidden_size)
    for name, layer in layers.items():
        if not layer.built:
            layer.build((None, config.hidden_size) if name == "nsp" else hidden)


def _connect(layers, outputs):
    """The functional graph from the inputs to just the outputs asked for."""
    inputs = {name: keras.Input((None,), dtype="int32", name=name)
              for name in ("token_ids", "segment_ids", "padding_mask")}
    found = layers["embeddings"](inputs["token_ids"], inputs["segment_ids"])
    bias = layers["padding_bias"](inputs["padding_mask"])
    details = [name for name in PER_LAYER if name in outputs]
    x = found["embeddings"]
    results = {"embeddings": x, "embeddings_sum": found["embeddings_sum"], "hidden_states": [x],
               **{name: [] for name in details}}
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
    if "pooled_output" in outputs or "nsp_logits" in outputs:
        results["pooled_output"] = layers["pooler"](x)
    if "nsp_logits" in outputs:
        results["nsp_logits"] = layers["nsp"](results["pooled_output"])
    return inputs, {name: results[name] for name in outputs}


def named_variables(model):
    """Every variable of a `BertModel` under the name Hugging Face's BertForPreTraining gives it.

    Returns: dict name -> `keras.Variable`; Dense kernels are [in, out] here, [out, in] there
        (see `is_transposed`).
    """
    layers = model.bert_layers
    found = _embedding_variables(layers["embeddings"])
    for index in range(model.bert_config.num_hidden_layers):
        found.update(_layer_variables(f"bert.encoder.layer.{index}", layers[f"layer_{index}"]))
    if "pooler" in layers:
        found.update(_dense("bert.pooler.dense", layers["pooler"].dense))
    if "mlm" in layers:
        head = layers["mlm"]
        found.update(_dense("cls.predictions.transform.dense", head.transform))
        found.update(_norm("cls.predictions.transform.LayerNorm", head.norm))
        found["cls.predictions.bias"] = head.bias
    if "nsp" in layers:
        found.update(_dense("cls.seq_relationship", layers["nsp"].dense))
    return found


def is_transposed(name):
    """Whether the variable of this name (see `named_variables`) is the transpose of Hugging Face's tensor."""
    return name.endswith(".weight") and not name.startswith("bert.embeddings.") and "LayerNorm" not in name


def _dense(name, layer):
    return {f"{name}.weight": layer.kernel, f"{name}.bias": layer.bias}


def _norm(name, layer):
    return {f"{name}.weight": layer.gamma, f"{name}.bias": layer.beta}


def _embedding_variables(layer):
    name = "bert.embeddings"
    return {f"{name}.word_embeddings.weight": layer.token_table,
            f"{name}.position_embeddings.weight": layer.position_table,
            f"{name}.token_type_embeddings.weight": layer.segment_table,
            **_norm(f"{name}.LayerNorm", layer.norm)}


def _layer_variables(name, layer):
    attention, feed_forward = layer.attention, layer.feed_forward
    return {**_dense(f"{name}.attention.self.query", attention.query),
            **_dense(f"{name}.attention.self.key", attention.key),
            **_dense(f"{name}.attention.self.value", attention.value),
            **_dense(f"{name}.attention.output.dense", attention.output_dense),
            **_norm(f"{name}.attention.output.LayerNorm", layer.attention_norm),
            **_dense(f"{name}.intermediate.dense", feed_forward.intermediate),
            **_dense(f"{name}.output.dense", feed_forward.output_dense),
            **_norm(f"{name}.output.LayerNorm", layer.feed_forward_norm)}
