"""Importing TensorFlow quickly (`quick_start`), and without its notes on standard error.

TensorFlow 2.21 writes which CPU and GPU libraries it found before it reads TF_CPP_MIN_LOG_LEVEL; to a reader
who waits for one line that says what is wrong, they are noise. So is its warning that a function is compiled again
and again: a step is compiled once for each length that batches are padded to, and that is meant.
"""

import os
import re
import sys
import tempfile

from bert_tf.startup import without_modules

_NOTE = re.compile(rb"^(WARNING: All log messages before absl|[IW]\d{4} )")


def import_tensorflow():
    """Import TensorFlow; of what it writes to standard error only those notes and that warning are left out."""
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as notes:
        os.dup2(notes.fileno(), 2)
        try:
            with without_modules():
                import tensorflow

            tensorflow.get_logger().addFilter(lambda record: "tf.function retracing" not in record.getMessage())
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            notes.seek(0)
            for line in notes:
                if not _NOTE.match(line):
                    os.write(2, line)
