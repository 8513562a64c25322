"""From raw text to a pre-trained model: documents, sentence pairs, masked instances, the objective."""
