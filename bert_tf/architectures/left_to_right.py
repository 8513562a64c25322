"""A left-to-right reader: BERT's layers, each token seeing only those before it (Devlin et al. 2019, section 5.1)."""

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT

LEFT_TO_RIGHT = Architecture(
    model_type="left-to-right",
    title="Left to right",
    order=6,
    source='Devlin et al. 2019, section 5.1 ("LTR & No NSP"); Radford et al. 2018',
    changes=(
        "Every token sees itself and those before it: a causal mask, GPT's way.",
        "A place is predicted from the state of the token before it, so every token can be learnt from at once.",
        "No pooler and no next sentence.",
    ),
    heads=("mlm",),
    trained=("mlm",),
    # The paper's ablation: BERT base otherwise.
    sizes={"base": BERT.sizes["base"]},
    only=BERT.only,
    transformers_classes=(({"mlm"}, "BertLMHeadModel"), (set(), "BertModel")),
    attention_direction="left_to_right",
    layer_class="bert_tf.layers.causal.CausalEncoderLayer",
    mlm_head_class="bert_tf.layers.causal.CausalLMHead",
)
