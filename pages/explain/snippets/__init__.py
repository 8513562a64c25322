"""The code of "Copy as Python", one file a page."""
