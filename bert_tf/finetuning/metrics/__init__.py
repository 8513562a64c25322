"""The metrics of the fine-tuning tasks."""
