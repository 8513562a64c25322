"""Fine-tuning: one module per task, one folder format, and the training loop of `bert_tf.training`."""
