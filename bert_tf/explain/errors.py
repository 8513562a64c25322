"""What a user can get wrong in an input, each error one clear sentence."""


class InputError(ValueError):
    """An input that no prediction can be made from; the message says what to change."""


class EmptyText(InputError):
    """A text without a single token."""


class NothingToPredict(InputError):
    """Neither a masked token nor a second sentence: there is no question to answer."""


class MaskPositionError(InputError):
    """A position to mask that is outside the sequence, or is one of the model's own special tokens."""


class WordNotFound(InputError):
    """A word to mask that the texts do not contain."""


class MaskTruncated(InputError):
    """A mask in the part of a text that was cut off because the model reads only so many tokens."""


class NotComparable(InputError):
    """Two traces that were not made from the same texts."""


class Cancelled(Exception):
    """A sweep that its progress callback stopped by returning False."""


def report(progress, done, total):
    """Tell a progress callback how far things are, if there is one.

    Args:
        progress: callable(done, total), or None. done, total: numbers of whatever is counted.
    Raises:
        Cancelled: it returned False (None, what a callback without an answer returns, goes on).
    """
    if progress is not None and progress(done, total) is False:
        raise Cancelled(f"Stopped after {done} of {total}.")


def checked_text(text, name):
    """Return `text` if it is a string with something in it.

    Raises:
        InputError: not a `str`.
        EmptyText: empty, or nothing but white space.
    """
    if not isinstance(text, str):
        raise InputError(f"{name} must be a string, not {type(text).__name__} ({text!r:.60}).")
    if not text.strip():
        raise EmptyText(f"{name} is empty: give it at least one word.")
    return text


def checked_pair(text_a, text_b):
    """Return (text_a, text_b) checked; a `text_b` that is None or blank becomes None, which means no pair."""
    text_a = checked_text(text_a, "text_a")
    if text_b is None or (isinstance(text_b, str) and not text_b.strip()):
        return text_a, None
    return text_a, checked_text(text_b, "text_b")
