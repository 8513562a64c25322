"""The lines that "Copy as Python" gives, one file a page."""
