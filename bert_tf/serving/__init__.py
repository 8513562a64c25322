"""A REST service over the models: predictions, analyses, sentence vectors, as JSON over HTTP (`bert-tf serve`)."""
