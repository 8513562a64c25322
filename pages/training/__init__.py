"""The pages of the group Training."""
