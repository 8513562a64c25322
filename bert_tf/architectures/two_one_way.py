"""Two parallel one-way stacks, left to right and right to left, as in ELMo, with BERT's layers."""

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT

TWO_ONE_WAY = Architecture(
    model_type="two-one-way",
    title="Two one-way readers",
    order=7,
    source="Peters et al. 2018 (ELMo); Devlin et al. 2019, appendix A.4",
    changes=(
        "It has two stacks of half the width: one reads from left to right, the other from right to left.",
        "They share the embeddings and are joined at the top: a token is predicted from the hidden states before and "
        "after it.",
        "It has no pooler and no next-sentence prediction.",
    ),
    heads=("mlm",),
    trained=("mlm",),
    # Each stack is as large as BERT base, as in the paper ("twice as expensive as a single bidirectional model").
    sizes={
        "base": {"num_hidden_layers": 12, "hidden_size": 1536, "num_attention_heads": 24, "intermediate_size": 6144}
    },
    only={**BERT.only, "tie_word_embeddings": True},
    transformers_classes=(({"mlm"}, "TwoOneWayForMaskedLM"), (set(), "TwoOneWayModel")),
    in_transformers=False,
    attention_direction="two_one_way",
    stacks=2,
    embeddings_class="bert_tf.layers.causal.BiLMEmbeddings",
    layer_class="bert_tf.layers.causal.BiLMEncoderLayer",
    mlm_head_class="bert_tf.layers.causal.BiLMHead",
)
