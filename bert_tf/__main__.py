"""The command `python -m bert_tf`."""

import sys

from bert_tf.cli import main

if __name__ == "__main__":
    sys.exit(main())
