"""Imports for the processes of `prepare`; the fork server loads them once for all (see `prepare._context`)."""

from bert_tf.startup import without_modules

with without_modules():
    import tensorflow_text  # noqa: F401
