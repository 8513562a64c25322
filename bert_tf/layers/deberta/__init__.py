"""The layers of DeBERTa-v3, and its relative positions."""
