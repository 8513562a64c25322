"""The state of the server and of each visit: models, caches, jobs, the view."""
