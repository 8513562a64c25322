"""What a process uses of its surroundings: a bounded part of the memory, files in buckets."""
