"""XLM-RoBERTa (Conneau et al. 2020): RoBERTa's network, trained on 100 languages."""

import dataclasses

from bert_tf.architectures.roberta import ROBERTA

XLM_ROBERTA = dataclasses.replace(
    ROBERTA,
    model_type="xlm-roberta",
    title="XLM-RoBERTa",
    order=8,
    source="Conneau et al. 2020",
    changes=(
        *ROBERTA.changes[:1],
        "It was trained on text in 100 languages, without a mark of the language.",
        "The tokenizer is SentencePiece with 250,002 pieces for all languages.",
        *ROBERTA.changes[2:],
    ),
    defaults={**ROBERTA.defaults, "vocab_size": 250002},
    transformers_classes=(({"mlm"}, "XLMRobertaForMaskedLM"), (set(), "XLMRobertaModel")),
    tokenizer="pieces",
)
