"""Figures of the rows of a file."""
