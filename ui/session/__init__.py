"""What the server and a visit hold: models, caches, jobs, the view."""
