"""What each word adds to a prediction: gradients, DeepLift, LRP, occlusion, LIME, input reduction, HotFlip."""
