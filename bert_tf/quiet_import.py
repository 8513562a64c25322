"""A fast import of TensorFlow (see `startup`) without its log messages on standard error.

TensorFlow 2.21 logs the CPU and GPU libraries before it reads TF_CPP_MIN_LOG_LEVEL. These messages would hide the one
line that tells the user what is wrong. So would its warning about repeated compilation ("retracing"): a training step
is compiled once for each length of the batches, which is intended.
"""

import os
import re
import sys
import tempfile

from bert_tf.startup import without_modules

_LOG_MESSAGE = re.compile(rb"^(WARNING: All log messages before absl|[IW]\d{4} )")


def import_tensorflow() -> None:
    """Import TensorFlow and remove only these messages and this warning from standard error."""
    if "tensorflow" in sys.modules:
        return
    sys.stderr.flush()
    original_stderr = os.dup(2)
    with tempfile.TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            with without_modules():
                import tensorflow

            tensorflow.get_logger().addFilter(lambda record: "tf.function retracing" not in record.getMessage())
        finally:
            os.dup2(original_stderr, 2)
            os.close(original_stderr)
            messages.seek(0)
            for line in messages:
                if not _LOG_MESSAGE.match(line):
                    os.write(2, line)
