"""Reading ahead in constant memory: a bounded window of texts, which is then sorted into batches of similar length."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")

# The number of batches that are sorted by length together. More batches mean less padding, but a longer wait for the
# first result.
BATCHES_PER_WINDOW = 32


def read_ahead_windows(source: Iterable[Item], batch_size: int) -> Iterator[list[Item]]:
    """Yield the items of an iterable in windows.

    With a batch size of 1 there is no padding, so nothing is read ahead: each text from an open pipe is processed when
    it arrives.

    Args:
        source: iterable. The items.
        batch_size: int. The number of items in one forward pass.

    Yields:
        Lists of at most `BATCHES_PER_WINDOW` batches.
    """
    items = iter(source)
    size = batch_size * BATCHES_PER_WINDOW if batch_size > 1 else 1
    while window := list(islice(items, size)):
        yield window
