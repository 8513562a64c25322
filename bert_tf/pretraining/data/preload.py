"""What the processes of `prepare` have loaded before each of them begins: see `prepare._context`."""

from bert_tf.startup import without_modules

with without_modules():
    import tensorflow_text  # noqa: F401
