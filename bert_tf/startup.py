"""Starting quickly: Keras without the libraries that it loads only to understand or draw other people's objects."""

import contextlib
import sys

#: Of use to who hands Keras data frames, wraps its models for scikit-learn or has it draw pictures; a third of the time
#: that TensorFlow with Keras takes to load.
_NOT_NEEDED = ("sklearn", "matplotlib", "pandas")


@contextlib.contextmanager
def without_modules():
    """Within this block Keras is imported as if those libraries were not installed; after it they can be imported.

    For programs that are ours from start to end, and before they have other threads: the rest of such a process has no
    `keras.wrappers`.
    """
    hidden = [name for name in _NOT_NEEDED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
