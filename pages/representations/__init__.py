"""The pages of the group Representations."""
