"""Error messages for the visitor; an error that is a fault of the program goes to the server's log."""

import contextlib
import functools
import logging

import streamlit as st

from bert_tf import user_errors
from bert_tf.errors import MissingHead
from ui.shell.limits import ROOT
from ui.widgets.formatting import escape_markdown

_CODE = (user_errors.PACKAGE, ROOT / "ui", ROOT / "pages")
_LOG = logging.getLogger("explorer")
_FAULT, _FILE = "Something went wrong here", "The server cannot use one of its files"
#: How the sentences begin that tell of an error of the program or of its server, without Markdown characters.
FAULTS = (_FAULT, _FILE)
#: What the log says before the traceback of a fault of the program.
LOGGED_FAULT = "a fault of the program"


def user_message(error, fallback=f"{_FAULT}. The error is in the server's log."):
    """The message of an error for the visitor.

    An error that names a file of the server is logged, as a visitor must not see the server's paths.

    Args:
        error: an exception that was caught.
        fallback: the message if the error is a fault of the program; the error is then logged.
    """
    if isinstance(error, OSError) and error.filename is not None:
        _LOG.error("a file that cannot be used", exc_info=error)
        return f"{_FILE} ({error.strerror}). Tell its owner: its log names the file."
    if user_errors.is_user_error(error, *_CODE):
        return error.sentence if isinstance(error, MissingHead) else str(error)
    _LOG.error(LOGGED_FAULT, exc_info=error)
    return fallback


@contextlib.contextmanager
def shown_errors():
    """Draw the error of the block on the page, as a sentence for the visitor."""
    try:
        yield
    except MemoryError:
        st.error(
            "There is not enough memory for this. Choose a smaller model or a shorter text.",
            icon=":material/memory:",
        )
    except Exception as error:
        # An error of the visitor's input is a sentence that says what to do next; any other is logged.
        sentence = user_message(
            error,
            f"{_FAULT}. The error is in the server's log. Reload the page, or change the text and try again.",
        )
        st.error(escape_markdown(sentence), icon=":material/error:")


def fragment(function, run_every=None):
    """`st.fragment` of a function whose errors are drawn: a fragment that runs alone is outside of the page's catch."""

    @functools.wraps(function)
    def drawn(*arguments, **named):
        with shown_errors():
            return function(*arguments, **named)

    return st.fragment(drawn, run_every=run_every)
