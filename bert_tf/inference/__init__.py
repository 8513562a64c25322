"""Inference with a loaded model: one forward pass as a `Trace`, predictions at masks, and batches of texts."""
