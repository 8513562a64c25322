"""Error messages for the visitor; an error that is a fault of the program goes to the server's log."""

import logging

from bert_tf import user_errors
from ui.shell.limits import ROOT

_CODE = (user_errors.PACKAGE, ROOT / "ui", ROOT / "pages")
_LOG = logging.getLogger("explorer")


def user_message(error, fallback):
    """The message of an error for the visitor.

    Args:
        error: an exception that was caught.
        fallback: the message if the error is a fault of the program; the error is then logged.
    """
    if user_errors.is_user_error(error, *_CODE):
        return str(error)
    _LOG.error("a fault of the program", exc_info=error)
    return fallback
