"""DeBERTa-v3 (He et al. 2021): attention by contents and relative positions, trained as ELECTRA's discriminator."""

from typing import Any

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT
from bert_tf.architectures.layer_weights import BERT_LAYER, LAYER_PARTS, LayerWeight

_LAYER, _STORED = "bert.encoder.layer.*.attention.self", "deberta.encoder.layer.*.attention.self"
_RELATIVE = "bert.encoder.rel_embeddings"
_ATTENTION = LAYER_PARTS[0]

# Key of config.json -> (Transformers' value if the key is missing, the value that DeBERTa-v3 has). A set of names is
# there one text, joined by "|", or a list.
_NETWORK: dict[str, tuple[Any, Any]] = {
    "relative_attention": (False, True),
    "share_att_key": (False, True),
    "norm_rel_ebd": ("none", {"layer_norm"}),
    "pos_att_type": ("", {"c2p", "p2c"}),
    "position_biased_input": (True, False),
    "conv_kernel_size": (0, 0),
}


def _read_settings(values: dict[str, Any]) -> dict[str, Any]:
    """Refuse the keys that choose another network of the DeBERTa family, and resolve numbers that mean a default."""
    values = dict(values)
    values.pop("legacy", None)  # which of two places in Transformers' files holds the MLM head: their names tell
    # A file of Transformers has some of these keys; our own settings (`BertConfig.to_dict`) have none.
    network = _NETWORK if _NETWORK.keys() & values.keys() else {}
    for key, (missing, needed) in network.items():
        value = values.pop(key, missing)
        if (_names(key, value) if isinstance(needed, set) else value) != needed:
            expected = " and ".join(sorted(needed)) if isinstance(needed, set) else needed
            raise ValueError(
                f"{key} is {value!r:.60}; of the DeBERTa family only v3 can be read, where it is {expected}. DeBERTa "
                "and DeBERTa-v2 compute something else."
            )
    most = values.get("max_relative_positions", -1)
    if type(most) is int and most < 1:  # as Transformers reads it
        values["max_relative_positions"] = values.get("max_position_embeddings", 512)
    return values


def _names(key: str, value: Any) -> set[str]:
    """The names in a text such as "p2c|c2p", or in a list."""
    if not isinstance(value, str | list | None):
        raise ValueError(f"{key} is {value!r:.60}; it must be a text or a list.")
    parts = value.lower().split("|") if isinstance(value, str) else value or ()
    return {str(part).strip() for part in parts}


DEBERTA = Architecture(
    model_type="deberta-v2",
    title="DeBERTa-v3",
    order=10,
    source="He et al. 2021",
    changes=(
        "An attention score sums three products: of two contents, and of each content with the other's relative "
        "position.",
        "Relative positions are in 256 buckets on each side, wider for farther tokens; no position is added to the "
        "token embeddings.",
        "It is trained as ELECTRA's discriminator: every token is classified as replaced or original.",
        "The tokenizer is SentencePiece with 128,001 pieces (multilingual: 250,102); there is one segment.",
    ),
    heads=("mlm", "replaced"),
    trained=("replaced",),
    # The config.json files of microsoft/deberta-v3-*; mDeBERTa-v3 has the shape of base.
    sizes={
        "xsmall": {
            "num_hidden_layers": 12,
            "hidden_size": 384,
            "num_attention_heads": 6,
            "intermediate_size": 1536,
        },
        "small": {**BERT.sizes["base"], "num_hidden_layers": 6},
        "base": BERT.sizes["base"],
        "large": BERT.sizes["large"],
    },
    defaults={
        "vocab_size": 128100,
        "max_position_embeddings": 512,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
        "position_buckets": 256,
        "max_relative_positions": 512,
    },
    ignored=frozenset({"cls_dropout", "pooler_dropout", "pooler_hidden_size"}),
    only={**BERT.only, "tie_word_embeddings": True},
    fixed={
        "relative_attention": True,
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "pooler_hidden_act": "gelu",
        "legacy": False,
    },
    read_settings=_read_settings,
    # "classifer" is the spelling in microsoft/DeBERTa's code. The MLM head of the "legacy" form has our own names.
    names=(
        (f"{_LAYER}.query", f"{_STORED}.query_proj"),
        (f"{_LAYER}.key", f"{_STORED}.key_proj"),
        (f"{_LAYER}.value", f"{_STORED}.value_proj"),
        (f"{_RELATIVE}.LayerNorm", "deberta.encoder.LayerNorm"),
        ("cls.predictions.bias", "lm_predictions.lm_head.bias"),
        ("cls.predictions.transform", "lm_predictions.lm_head"),
        ("discriminator_predictions.dense_prediction", "mask_predictions.classifier"),
        ("discriminator_predictions.dense_prediction", "mask_predictions.classifer"),
        ("discriminator_predictions", "mask_predictions"),
        ("bert", "deberta"),
    ),
    transformers_classes=(({"mlm"}, "DebertaV2ForMaskedLM"), (set(), "DebertaV2Model")),
    sentence_heads={task: ("gelu", "pooler.dense", "classifier") for task in ("classify", "choose")},
    tokenizer="pieces",
    has_position_table=False,
    score_terms=3,
    replaced_head_adds_first=True,
    layer_weights=(
        LayerWeight(f"{_RELATIVE}.weight", ("2S", "H"), _ATTENTION, "relative.table", "first"),
        LayerWeight(f"{_RELATIVE}.LayerNorm.weight", ("H",), _ATTENTION, "relative.norm.gamma", "first"),
        LayerWeight(f"{_RELATIVE}.LayerNorm.bias", ("H",), _ATTENTION, "relative.norm.beta", "first"),
        *BERT_LAYER,
    ),
    embeddings_class="bert_tf.layers.deberta.encoder.DisentangledEmbeddings",
    layer_class="bert_tf.layers.deberta.encoder.DisentangledEncoderLayer",
)
