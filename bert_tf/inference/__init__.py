"""A loaded model and its answers: one forward pass as a `Trace`, predictions at masks, batches of texts."""
