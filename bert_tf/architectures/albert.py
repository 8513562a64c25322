"""ALBERT (Lan et al. 2020): all layers share one set of weights, and the embeddings are narrower."""

from bert_tf.architectures.architecture import Architecture

_LAYER = "bert.encoder.layer.*"
_STORED = "albert.encoder.albert_layer_groups.*.albert_layers.0"
_GOOGLE = "bert.encoder.transformer.group_*.inner_group_0"


def _size(layers, hidden, heads):
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
    }


ALBERT = Architecture(
    model_type="albert",
    title="ALBERT",
    order=4,
    source="Lan et al. 2020",
    changes=(
        "All layers share one set of weights, which saves memory but no time.",
        "Token embeddings have 128 dimensions and are then projected to the hidden size.",
        "Sentence-order prediction replaces next-sentence prediction: are two neighbouring segments in order or "
        "swapped?",
        "The tokenizer is SentencePiece with 30,000 pieces; the activation is the tanh approximation of GELU.",
    ),
    heads=("pooler", "mlm", "sop"),
    trained=("pooler", "mlm", "sop"),
    # Lan et al. 2020, table 1.
    sizes={
        "base": _size(12, 768, 12),
        "large": _size(24, 1024, 16),
        "xlarge": _size(24, 2048, 16),
        "xxlarge": _size(12, 4096, 64),
    },
    defaults={
        "vocab_size": 30000,
        "embedding_size": 128,
        "hidden_size": 4096,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "num_hidden_groups": 1,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    ignored=frozenset(
        {
            "classifier_dropout_prob",
            "down_scale_factor",
            "gap_size",
            "layers_to_keep",
            "net_structure_type",
            "num_memory_blocks",
        }
    ),
    names=(
        (f"{_LAYER}.attention.output.dense", f"{_STORED}.attention.dense"),
        (f"{_LAYER}.attention.output.LayerNorm", f"{_STORED}.attention.LayerNorm"),
        (f"{_LAYER}.attention.self", f"{_STORED}.attention"),
        (f"{_LAYER}.intermediate.dense", f"{_STORED}.ffn"),
        (f"{_LAYER}.output.dense", f"{_STORED}.ffn_output"),
        (f"{_LAYER}.output.LayerNorm", f"{_STORED}.full_layer_layer_norm"),
        ("bert.embeddings_project", "albert.encoder.embedding_hidden_mapping_in"),
        ("bert.pooler.dense", "albert.pooler"),
        ("cls.predictions.transform.dense", "predictions.dense"),
        ("cls.predictions.transform.LayerNorm", "predictions.LayerNorm"),
        ("cls.predictions", "predictions"),
        ("bert", "albert"),
    ),
    transformers_classes=(
        ({"pooler", "mlm", "sop"}, "AlbertForPreTraining"),
        ({"mlm"}, "AlbertForMaskedLM"),
        (set(), "AlbertModel"),
    ),
    google_settings="albert_config.json",
    # In Google's code "gelu" is the tanh approximation.
    google_values={"hidden_act": {"gelu": "gelu_new"}},
    google_names={
        ("pooler", "mlm", "sop"): (
            (f"{_LAYER}.attention.output.LayerNorm", f"{_GOOGLE}.LayerNorm"),
            (f"{_LAYER}.attention", f"{_GOOGLE}.attention_1"),
            (f"{_LAYER}.intermediate.dense", f"{_GOOGLE}.ffn_1.intermediate.dense"),
            (f"{_LAYER}.output.dense", f"{_GOOGLE}.ffn_1.intermediate.output.dense"),
            (f"{_LAYER}.output.LayerNorm", f"{_GOOGLE}.LayerNorm_1"),
            ("bert.embeddings_project", "bert.encoder.embedding_hidden_mapping_in"),
            ("sop_classifier.classifier", "cls.seq_relationship"),
        )
    },
    tokenizer="pieces",
    projects_embeddings=True,
)
