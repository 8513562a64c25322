"""The pages of the group Explain."""
