"""ModernBERT (Warner et al. 2024): an encoder with the changes that decoders brought, for up to 8,192 tokens."""

from typing import Any

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT
from bert_tf.architectures.layer_weights import LAYER_PARTS, LayerWeight, dense

_ATTENTION, _ATTENTION_NORM, _FEED_FORWARD, _FEED_FORWARD_NORM = LAYER_PARTS
_LAYER, _STORED = "bert.encoder.layer.*", "model.layers.*"
# Kind of layer in rope_parameters -> the key of the released files.
_THETAS = {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"}
# Keys that only the heads read.
_OF_HEADS = ("classifier_activation", "classifier_bias", "decoder_bias")


def _read_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Translate `layer_types`, `rope_parameters` and `rope_scaling`, the forms of Transformers 5, to the four numbers
    of the released files."""
    values = dict(values)
    values.pop("position_embedding_type", None)  # released files name "absolute" or "sans_pos"; neither is read
    if values.get("architectures") == ["ModernBertModel"]:  # an encoder alone
        for key in _OF_HEADS:
            values.pop(key, None)
    types = values.pop("layer_types", None)
    if types is not None:
        values["global_attn_every_n_layers"] = _every(types, values.get("num_hidden_layers"))
    parameters = _object("rope_parameters", values.pop("rope_parameters", None))
    scaling = _object("rope_scaling", values.pop("rope_scaling", None))  # for both kinds of layers
    for key in sorted(parameters.keys() - _THETAS.keys()):
        raise ValueError(f"rope_parameters has the key {key!r}; only {' and '.join(_THETAS)} are supported there.")
    for kind, name in _THETAS.items():
        rope = {**_object(f"{kind} of rope_parameters", parameters.get(kind)), **scaling}
        rope_type = rope.get("rope_type", rope.get("type", "default"))
        if rope_type != "default":
            raise ValueError(f"rope_type is {rope_type!r:.60}; only default rotary positions are supported.")
        if "rope_theta" in rope:
            values[name] = rope["rope_theta"]
    return values


def _object(name: str, value: Any) -> dict[str, Any]:
    """The object that a key has; {} for null."""
    if not isinstance(value, dict | None):
        raise ValueError(f"{name} is {value!r:.60}; it must be an object.")
    return value or {}


def _every(types: Any, count: Any) -> int:
    """Every how many layers attention is global, from the list of the layers' types; `count` layers, None if unsaid."""
    if not isinstance(types, list):
        raise ValueError(f"layer_types is {types!r:.60}; it must be a list.")
    if count not in (None, len(types)):
        raise ValueError(f"layer_types has {len(types)} values, and num_hidden_layers is {count!r:.40}.")
    for kind in types:
        if kind not in ("full_attention", "sliding_attention"):
            raise ValueError(f"layer_types has {kind!r:.60}; it may have full_attention and sliding_attention.")
    global_layers = [index for index, kind in enumerate(types) if kind == "full_attention"]
    every = global_layers[1] if len(global_layers) > 1 else len(types)
    if global_layers != list(range(0, len(types), max(1, every))):
        raise ValueError("layer_types is not supported: global attention must come every n layers, from the first.")
    return every


MODERNBERT = Architecture(
    model_type="modernbert",
    title="ModernBERT",
    order=6,
    source="Warner et al. 2024",
    changes=(
        "It reads up to 8,192 tokens: every third layer attends to all tokens, the others to 64 on each side.",
        "Positions are rotations of queries and keys; nothing is added to the token embeddings.",
        "Each layer normalises before its blocks, and no dense layer or normalisation of the encoder has a bias.",
        "The feed-forward block is gated (GeGLU); pre-training masks 30% of the tokens and has no sentence pairs.",
        "Its tokenizer is a byte-level BPE of 50,368 tokens, trained on text and code.",
    ),
    heads=("mlm",),
    trained=("mlm",),
    # Warner et al. 2024, table 4 (appendix).
    sizes={
        "base": {
            "num_hidden_layers": 22,
            "hidden_size": 768,
            "num_attention_heads": 12,
            "intermediate_size": 1152,
        },
        "large": {
            "num_hidden_layers": 28,
            "hidden_size": 1024,
            "num_attention_heads": 16,
            "intermediate_size": 2624,
        },
    },
    defaults={
        "vocab_size": 50368,
        "num_hidden_layers": 22,
        "intermediate_size": 1152,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": 8192,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 50283,
        "local_attention": 128,
        "global_attn_every_n_layers": 3,
        "global_rope_theta": 160_000.0,
        "local_rope_theta": 10_000.0,
    },
    settings={
        "hidden_act": "hidden_activation",
        "layer_norm_eps": "norm_eps",
        "hidden_dropout_prob": "mlp_dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    },
    ignored=frozenset(
        {
            "classifier_pooling",
            "deterministic_flash_attn",
            "embedding_dropout",
            "initializer_cutoff_factor",
            "reference_compile",
            "repad_logits_with_grad",
            "sparse_pred_ignore_index",
            "sparse_prediction",
        }
    ),
    only={**BERT.only, "type_vocab_size": 0, "hidden_act": "gelu"},
    fixed={
        "attention_bias": False,
        "classifier_activation": "gelu",
        "classifier_bias": False,
        "decoder_bias": True,
        "mlp_bias": False,
        "norm_bias": False,
    },
    read_settings=_read_settings,
    names=(
        (f"{_LAYER}.attention.LayerNorm", f"{_STORED}.attn_norm"),
        (f"{_LAYER}.attention.self.qkv", f"{_STORED}.attn.Wqkv"),
        (f"{_LAYER}.attention.output.dense", f"{_STORED}.attn.Wo"),
        (f"{_LAYER}.intermediate.LayerNorm", f"{_STORED}.mlp_norm"),
        (f"{_LAYER}.intermediate.dense", f"{_STORED}.mlp.Wi"),
        (f"{_LAYER}.output.dense", f"{_STORED}.mlp.Wo"),
        ("bert.encoder.LayerNorm", "model.final_norm"),
        ("bert.embeddings.word_embeddings", "model.embeddings.tok_embeddings"),
        ("bert.embeddings.LayerNorm", "model.embeddings.norm"),
        ("cls.predictions.transform.dense", "head.dense"),
        ("cls.predictions.transform.LayerNorm", "head.norm"),
        ("cls.predictions.bias", "decoder.bias"),
        ("cls.predictions.decoder", "decoder"),
        ("bert", "model"),
    ),
    transformers_classes=(({"mlm"}, "ModernBertForMaskedLM"), (set(), "ModernBertModel")),
    sentence_heads={task: ("gelu", "head.dense", "classifier") for task in ("classify", "choose")},
    sentence_settings={"classifier_pooling": "cls"},
    prediction_head=True,
    tokenizer="bytes",
    has_position_table=False,
    norm_first=True,
    gated_units=True,
    has_biases=False,
    # What normalises the input of attention belongs to that block; what follows the sum, to the part after it.
    layer_weights=(
        LayerWeight("attention.LayerNorm.weight", ("H",), _ATTENTION, "attention_norm.gamma", "after the first"),
        *dense("attention.self.qkv", "3H", "H", _ATTENTION, "attention.qkv", bias=False),
        *dense("attention.output.dense", "H", "H", _ATTENTION, "attention.output_dense", bias=False),
        LayerWeight("intermediate.LayerNorm.weight", ("H",), _ATTENTION_NORM, "feed_forward_norm.gamma"),
        *dense("intermediate.dense", "2F", "H", _FEED_FORWARD, "feed_forward.intermediate", bias=False),
        *dense("output.dense", "H", "F", _FEED_FORWARD, "feed_forward.output_dense", bias=False),
        LayerWeight("bert.encoder.LayerNorm.weight", ("H",), _FEED_FORWARD_NORM, "final_norm.gamma", "last"),
    ),
    embeddings_class="bert_tf.layers.modern.ModernEmbeddings",
    layer_class="bert_tf.layers.modern.ModernEncoderLayer",
    mlm_head_class="bert_tf.layers.modern.ModernMaskedLMHead",
)
