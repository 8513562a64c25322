"""Any number of texts in constant memory: read a bounded window ahead, so that batches are of like length."""

from itertools import islice

# Batches sorted by length together. More leaves less padding, and longer to wait for the first answer.
BATCHES_PER_WINDOW = 32


def read_ahead_windows(source, batch_size):
    """Lists of what is read together.

    In batches of one nothing is padded, so there nothing is read ahead either: each text of a pipe that stays open
    is answered as it comes.

    Args: source: iterable. batch_size: texts in one forward pass.

    Yields: lists of at most `BATCHES_PER_WINDOW` batches.
    """
    source = iter(source)
    size = batch_size * BATCHES_PER_WINDOW if batch_size > 1 else 1
    while window := list(islice(source, size)):
        yield window
