"""What concerns the whole server and not one visit: its start and end, its memory, uploaded files, its HTML page."""
