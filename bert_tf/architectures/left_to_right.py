"""A left-to-right model: BERT's layers with a causal attention mask (Devlin et al. 2019, section 5.1)."""

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT

LEFT_TO_RIGHT = Architecture(
    model_type="left-to-right",
    title="Left to right",
    order=6,
    source='Devlin et al. 2019, section 5.1 ("LTR & No NSP"); Radford et al. 2018',
    changes=(
        "Every token attends to itself and the tokens before it: a causal mask, as in GPT.",
        "A token is predicted from the hidden state of the token before it, so all tokens are trained at once.",
        "It has no pooler and no next-sentence prediction.",
    ),
    heads=("mlm",),
    trained=("mlm",),
    # The paper's ablation has the size of BERT base.
    sizes={"base": BERT.sizes["base"]},
    only=BERT.only,
    transformers_classes=(({"mlm"}, "BertLMHeadModel"), (set(), "BertModel")),
    attention_direction="left_to_right",
    layer_class="bert_tf.layers.causal.CausalEncoderLayer",
    mlm_head_class="bert_tf.layers.causal.CausalLMHead",
)
