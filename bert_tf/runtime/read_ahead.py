"""Reading ahead in constant memory: a bounded window of texts, which is then sorted into batches of similar length.

A bad text among them need not end the run: its error can stand in its place.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from numbers import Integral
from typing import Any, TypeVar

from bert_tf.errors import InputError

Item = TypeVar("Item")

# The number of batches that are sorted by length together. More batches mean less padding, but a longer wait for the
# first result.
BATCHES_PER_WINDOW = 32


def check_batch_size(batch_size: Any) -> None:
    """Check that a number of items in one forward pass is a positive whole number.

    Raises:
        InputError: it is not.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, Integral) or batch_size < 1:
        raise InputError(f"batch_size must be a whole number of at least 1, not {batch_size!r:.60}.")


def check_errors(errors: Any) -> None:
    """Check that the argument `errors` of a run is "raise" or "return".

    Raises:
        InputError: it is not.
    """
    if errors not in ("raise", "return"):
        raise InputError(f'errors must be "raise" or "return", not {errors!r}.')


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


def read_row(row: Any, read: Callable[[Any], Item], errors: str) -> Item | Exception:
    """Read one row of a run; an error that is no ValueError is one of the run and raised.

    Args:
        row: what `read` takes, or an exception, which is the error of this row.
        read: callable. From a row to what a batch is made of.
        errors: str. "raise" or "return", for the error of a row.

    Returns:
        What `read` returns, or the error of the row.
    """
    if isinstance(row, Exception):
        if errors == "raise":
            raise row
        return row
    try:
        return read(row)
    except ValueError as error:
        if errors == "raise":
            raise
        return error
