"""Shared by several commands: output files, model loading, tables for the terminal, options for reading examples."""
