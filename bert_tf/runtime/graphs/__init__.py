"""The forward pass as OpenVINO graphs: BERT's, and those of other encoder layers over it."""
