"""Figures of hidden states, embeddings and activations."""
