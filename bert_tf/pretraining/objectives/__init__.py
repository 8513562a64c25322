"""The pre-training objectives."""
