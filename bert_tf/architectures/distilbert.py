"""DistilBERT (Sanh et al. 2019): half of BERT's layers, trained with BERT as the teacher."""

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT

_LAYER, _STORED = "bert.encoder.layer.*", "distilbert.transformer.layer.*"

DISTILBERT = Architecture(
    model_type="distilbert",
    title="DistilBERT",
    order=3,
    source="Sanh et al. 2019",
    changes=(
        "It has six layers instead of twelve, initialized from every other layer of BERT.",
        "It learns from the teacher's probabilities and hidden states as well as from the masked words.",
        "It has no segments and no pooler.",
    ),
    heads=("mlm",),
    trained=("mlm",),
    learns_besides=("its teacher",),
    sizes={"base": {"num_hidden_layers": 6}},
    defaults={"num_hidden_layers": 6, "type_vocab_size": 0},
    settings={
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    },
    bert_names=frozenset({"hidden_size", "num_hidden_layers", "num_attention_heads"}),
    # The epsilon is fixed in Transformers' code, whatever a file says.
    ignored=frozenset({"layer_norm_eps", "qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_"}),
    only={**BERT.only, "type_vocab_size": 0, "layer_norm_eps": 1e-12},
    names=(
        (f"{_LAYER}.attention.self.query", f"{_STORED}.attention.q_lin"),
        (f"{_LAYER}.attention.self.key", f"{_STORED}.attention.k_lin"),
        (f"{_LAYER}.attention.self.value", f"{_STORED}.attention.v_lin"),
        (f"{_LAYER}.attention.output.dense", f"{_STORED}.attention.out_lin"),
        (f"{_LAYER}.attention.output.LayerNorm", f"{_STORED}.sa_layer_norm"),
        (f"{_LAYER}.intermediate.dense", f"{_STORED}.ffn.lin1"),
        (f"{_LAYER}.output.dense", f"{_STORED}.ffn.lin2"),
        (f"{_LAYER}.output.LayerNorm", f"{_STORED}.output_layer_norm"),
        ("cls.predictions.transform.dense", "vocab_transform"),
        ("cls.predictions.transform.LayerNorm", "vocab_layer_norm"),
        ("cls.predictions.bias", "vocab_projector.bias"),
        ("cls.predictions.decoder", "vocab_projector"),
        ("bert", "distilbert"),
    ),
    transformers_classes=(({"mlm"}, "DistilBertForMaskedLM"), (set(), "DistilBertModel")),
    sentence_heads={task: ("relu", "pre_classifier", "classifier") for task in ("classify", "choose")},
)
