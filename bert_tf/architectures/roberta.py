"""RoBERTa (Liu et al. 2019): BERT trained longer on more text, without sentence pairs."""

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT

ROBERTA = Architecture(
    model_type="roberta",
    title="RoBERTa",
    order=2,
    source="Liu et al. 2019",
    changes=(
        "It predicts only masked words, with new masks each time a text is read, and no next sentence.",
        "Its alphabet is bytes: 50,265 byte-level pieces spell any text, so no token is unknown.",
        "Positions begin at 2, after the padding id 1; there is one segment; epsilon is 1e-5.",
    ),
    heads=("pooler", "mlm"),
    trained=("mlm",),
    sizes={size: BERT.sizes[size] for size in ("base", "large")},
    defaults={
        "vocab_size": 50265,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
    },
    # A table of another size is an error when it is read; another epsilon would not be noticed.
    file_defaults={"layer_norm_eps": 1e-12},
    only=BERT.only,
    positions_after_pad=True,
    names=(
        ("cls.predictions.transform.dense", "lm_head.dense"),
        ("cls.predictions.transform.LayerNorm", "lm_head.layer_norm"),
        ("cls.predictions", "lm_head"),
        ("bert", "roberta"),
    ),
    transformers_classes=(({"mlm"}, "RobertaForMaskedLM"), (set(), "RobertaModel")),
    tokenizer="bytes",
    mlm_act="gelu",
)
