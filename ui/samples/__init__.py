"""Example inputs of the pages."""
