"""The optimisers by name. A new one is one file beside this one, and one entry here. This imports no Keras."""

#: Name -> (module, class); imported when it is asked for. The class is a `keras.optimizers.Optimizer` that is made of
#: `(schedule, settings, products)`, as `adamw.AdamW` describes them.
OPTIMIZERS = {
    "adamw": ("bert_tf.training.optimizers.adamw", "AdamW"),
    "lamb": ("bert_tf.training.optimizers.lamb", "Lamb"),
    "muon": ("bert_tf.training.optimizers.muon", "Muon"),
}
