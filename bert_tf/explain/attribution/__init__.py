"""What each word adds to one answer: gradients, DeepLift, relevance propagation, LIME, changed words."""
