"""Sample texts that the pages open with."""
