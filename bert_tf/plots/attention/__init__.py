"""Figures of attention and heads."""
