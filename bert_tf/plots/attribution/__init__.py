"""Figures of attribution: what each word adds to a prediction."""
