"""What hidden states hold: logit lens, neighbours, senses, factors, concepts, similarity of layers."""
