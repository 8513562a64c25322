"""The pages of the group Learn."""
