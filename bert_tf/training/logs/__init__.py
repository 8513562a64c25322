"""What a training writes about itself: the log of its run, and experiment trackers."""
