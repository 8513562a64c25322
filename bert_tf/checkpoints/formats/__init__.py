"""The file formats of stored models, one module each."""
