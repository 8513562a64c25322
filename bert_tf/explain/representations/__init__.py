"""The information in hidden states, embeddings and activations."""
