"""The pages of the group Tasks."""
