"""ELECTRA (Clark et al. 2020): a small generator replaces tokens, and the discriminator detects them."""

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT

_DISCRIMINATOR = (
    ("discriminator_predictions.dense_prediction", "discriminator_predictions.dense_1"),
    ("bert", "electra"),
)
# The two models share the token, position and segment embedding tables.
_GENERATOR = (
    ("bert.embeddings", "electra.embeddings"),
    ("cls.predictions.transform", "generator_predictions"),
    ("cls.predictions.bias", "generator_predictions.output_bias"),
    ("bert", "generator"),
)

ELECTRA = Architecture(
    model_type="electra",
    title="ELECTRA",
    order=5,
    source="Clark et al. 2020",
    changes=(
        "A small generator fills masked positions; the discriminator classifies every token as replaced or original.",
        "Both models share the embeddings; in the small size they are 128 wide and projected to the hidden size.",
        "It has no pooler and no next-sentence prediction.",
    ),
    heads=("mlm", "replaced"),
    trained=("replaced",),
    # Clark et al. 2020, table 6; generators as released.
    sizes={
        "small": {},
        "base": {**BERT.sizes["base"], "embedding_size": 768},
        "large": {**BERT.sizes["large"], "embedding_size": 1024},
        "small-generator": {},
        "base-generator": {"embedding_size": 768},
        "large-generator": {"embedding_size": 1024, "num_hidden_layers": 24},
    },
    trained_otherwise={f"{size}-generator": ("mlm",) for size in ("small", "base", "large")},
    defaults={"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
    only={"num_hidden_groups": None},
    ignored=frozenset({"summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"}),
    names=(
        ("cls.predictions.transform.dense", "generator_predictions.dense"),
        ("cls.predictions.transform.LayerNorm", "generator_predictions.LayerNorm"),
        ("cls.predictions.bias", "generator_lm_head.bias"),
        ("cls.predictions.decoder", "generator_lm_head"),
        ("bert", "electra"),
    ),
    transformers_classes=(
        ({"replaced"}, "ElectraForPreTraining"),
        ({"mlm"}, "ElectraForMaskedLM"),
        (set(), "ElectraModel"),
    ),
    sentence_heads={
        "classify": ("gelu", "classifier.dense", "classifier.out_proj"),
        "choose": ("gelu", "sequence_summary.summary", "classifier"),
    },
    mlm_act="gelu",
    # For multiple choice only; these are also the defaults if a file does not state them.
    sentence_settings={"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"},
    google_settings="electra_config.json",
    google_names={("replaced",): _DISCRIMINATOR, ("mlm",): _GENERATOR},
    google_others={
        ("replaced",): ("generator",),
        ("mlm",): ("electra/encoder", "electra/embeddings_project", "discriminator_predictions"),
    },
)
