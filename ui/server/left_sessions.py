"""The sessions of visitors who have left: they are closed, so that their memory is freed.

Streamlit keeps a session for two minutes, in which its browser may come back. After that it frees the session only when
another visitor leaves; until then it holds what the fragments of the page refer to, such as attention maps.
"""

import asyncio

from streamlit.runtime import get_instance

#: Seconds after which a session is closed. After Streamlit's two minutes it cannot be reached any more.
LEFT = 100.0

_loops = []


def prepare():
    """Note the event loop of the server. Call it there."""
    _loops[:] = [asyncio.get_running_loop()]


def close(session):
    """Close a session, unless its browser has come back; from any thread.

    Args:
        session: str. Its id.
    """
    for loop in _loops:
        loop.call_soon_threadsafe(_close, session)


def _close(session):
    if not get_instance().is_active_session(session):
        get_instance().close_session(session)
