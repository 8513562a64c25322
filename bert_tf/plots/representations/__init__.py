"""Figures of hidden states."""
