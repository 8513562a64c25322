"""Analyses of every row of a file."""
