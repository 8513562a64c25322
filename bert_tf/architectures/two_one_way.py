"""Two one-way readers, left to right and right to left, side by side: ELMo's way with BERT's layers."""

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT

TWO_ONE_WAY = Architecture(
    model_type="two-one-way",
    title="Two one-way readers",
    order=7,
    source="Peters et al. 2018 (ELMo); Devlin et al. 2019, appendix A.4",
    changes=(
        "Two stacks, each of half the width: one reads from left to right, the other from right to left.",
        "They share the embeddings and meet at the top: a place is told from the states before and after it.",
        "No pooler and no next sentence.",
    ),
    heads=("mlm",),
    trained=("mlm",),
    # Each of the two as large as BERT base, as the paper has it ("twice as expensive as a single bidirectional
    # model").
    sizes={
        "base": {"num_hidden_layers": 12, "hidden_size": 1536, "num_attention_heads": 24, "intermediate_size": 6144}
    },
    only=BERT.only,
    transformers_classes=(({"mlm"}, "TwoOneWayForMaskedLM"), (set(), "TwoOneWayModel")),
    attention_direction="two_one_way",
    stacks=2,
    embeddings_class="bert_tf.layers.causal.BiLMEmbeddings",
    layer_class="bert_tf.layers.causal.BiLMEncoderLayer",
    mlm_head_class="bert_tf.layers.causal.BiLMHead",
)
