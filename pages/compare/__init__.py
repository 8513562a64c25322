"""The pages of the group Compare."""
