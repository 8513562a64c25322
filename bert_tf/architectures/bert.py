"""BERT (Devlin et al. 2019), the architecture that the other records are compared with."""

from bert_tf.architectures.architecture import Architecture

_SHAPES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}

BERT = Architecture(
    model_type="bert",
    title="BERT",
    order=1,
    source="Devlin et al. 2019",
    changes=(),
    heads=("pooler", "mlm", "nsp"),
    trained=("pooler", "mlm", "nsp"),
    # Turc et al. 2019 for the four small sizes; Devlin et al. 2019, section 3 for base and large.
    sizes={
        name: {
            "num_hidden_layers": layers,
            "hidden_size": hidden,
            "num_attention_heads": heads,
            "intermediate_size": 4 * hidden,
        }
        for name, (layers, hidden, heads) in _SHAPES.items()
    },
    only={"embedding_size": None, "num_hidden_groups": None},
    transformers_classes=(
        ({"pooler", "mlm", "nsp"}, "BertForPreTraining"),
        ({"mlm"}, "BertForMaskedLM"),
        ({"nsp"}, "BertForNextSentencePrediction"),
        (set(), "BertModel"),
    ),
    google_settings="bert_config.json",
    google_names={("pooler", "mlm", "nsp"): ()},
)
