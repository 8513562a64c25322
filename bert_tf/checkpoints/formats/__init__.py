"""The file formats of stored models, one module per format."""
