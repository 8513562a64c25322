"""Figures of what each word adds to an answer."""
