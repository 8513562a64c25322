"""A faster start: an import of Keras without the optional libraries that it loads."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

#: Keras needs these only for data frames, scikit-learn wrappers and plots. They take a third of the time in which
#: TensorFlow with Keras loads.
_NOT_NEEDED = ("sklearn", "matplotlib", "pandas")


@contextlib.contextmanager
def without_modules() -> Iterator[None]:
    """Import Keras in this block as if these libraries were not installed; after the block they can be imported.

    It is only for programs of this project, before they start other threads: `keras.wrappers` is missing in the rest
    of the process.
    """
    modules: dict[str, Any] = sys.modules
    blocked = [name for name in _NOT_NEEDED if name not in modules]
    modules.update(dict.fromkeys(blocked))  # None makes an import fail
    try:
        yield
    finally:
        for name in blocked:
            del modules[name]
