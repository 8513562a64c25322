"""The pages of the group Attention."""
