"""Analyses of whole models: their parts, their training, two of them side by side."""
