"""The optimizers, made by name."""
