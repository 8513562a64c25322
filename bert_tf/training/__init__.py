"""Training: precision, optimiser and schedule, checkpoints, and the one loop that every objective uses."""
