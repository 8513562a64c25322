"""The project's own components (`assets/components`), and what they are given."""
