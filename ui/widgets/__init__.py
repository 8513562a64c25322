"""Inputs, tables, figures and downloads that several pages use."""
