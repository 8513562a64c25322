"""Fine-tuning: one module a task family, one folder format, the one training loop."""
