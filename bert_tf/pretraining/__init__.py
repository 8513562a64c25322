"""Pre-training: documents, sentence pairs, masked examples, and the objectives."""
