"""Imports TensorFlow and Keras quickly, and without TensorFlow's notes on standard error.

TensorFlow 2.21 writes which CPU and GPU libraries it found before it reads TF_CPP_MIN_LOG_LEVEL. It also warns that a
function is compiled again and again; here this is intended: a step is compiled once for each padded length.
"""

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

#: Libraries that Keras imports only to accept data frames, wrap models for scikit-learn and draw pictures. They take a
#: third of the time in which TensorFlow and Keras are imported.
_NOT_NEEDED = ("sklearn", "matplotlib", "pandas")
_NOTE = re.compile(rb"^(WARNING: All log messages before absl|[IW]\d{4} )")


@contextlib.contextmanager
def without_modules() -> Iterator[None]:
    """Hides these libraries inside the block, so that Keras is imported without them; later they can be imported.

    For the programs of this project, before they start other threads: the process has no `keras.wrappers`.
    """
    hidden = [name for name in _NOT_NEEDED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def import_tensorflow() -> None:
    """Imports TensorFlow; its notes and its warning about repeated compilation are left out of standard error."""
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            with without_modules():
                import tensorflow

            tensorflow.get_logger().addFilter(lambda record: "tf.function retracing" not in record.getMessage())
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            notes.seek(0)
            for line in notes:
                if not _NOTE.match(line):
                    os.write(2, line)
