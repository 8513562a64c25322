"""Fine-tuning: data readers, heads, metrics and decoding of the task families, over the one training loop."""
