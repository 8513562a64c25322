"""Figures of ablation and patching."""
