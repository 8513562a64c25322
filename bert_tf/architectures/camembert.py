"""CamemBERT (Martin et al. 2020): RoBERTa's network, trained on French."""

import dataclasses

from bert_tf.architectures.roberta import ROBERTA

CAMEMBERT = dataclasses.replace(
    ROBERTA,
    model_type="camembert",
    title="CamemBERT",
    order=9,
    source="Martin et al. 2020",
    changes=(
        *ROBERTA.changes[:1],
        "It was trained on French text; whole words are masked.",
        "The tokenizer is SentencePiece with 32,005 pieces.",
        *ROBERTA.changes[2:],
    ),
    defaults={**ROBERTA.defaults, "vocab_size": 32005},
    transformers_classes=(({"mlm"}, "CamembertForMaskedLM"), (set(), "CamembertModel")),
    tokenizer="pieces",
)
