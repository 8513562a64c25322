"""What the processes of `prepare` have loaded before each of them begins: see `prepare._context`."""

from bert_tf.startup import leaving_out

with leaving_out():
    import tensorflow_text  # noqa: F401
