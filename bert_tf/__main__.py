"""The command `python -m bert_tf`, or `bert-tf`."""

import signal
import sys


def run() -> int:
    """Run the command of this process. Ctrl-C ends it without a traceback, also while it begins or ends.

    Returns:
        int, the exit code.
    """
    # In the background the signal is ignored, and stays so.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the shell reports 130
    from bert_tf.cli import main

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    code = main()
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return code


if __name__ == "__main__":
    sys.exit(run())
