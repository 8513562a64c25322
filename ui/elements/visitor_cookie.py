"""The browser component that keeps the visitor's token in a cookie."""

from ui import ownership
from ui.elements.component_registry import register
from ui.session import state

_VISITOR, _KEY = register("visitor"), "c_visitor"
_SECONDS = 365 * 24 * 3600


def draw():
    """Let the browser keep this visitor's token, so that a later visit knows what the visitor has started."""
    data = {
        "cookie": ownership.COOKIE,
        "token": ownership.visitor_token(),
        "may_adopt": ownership.may_adopt(),
        "seconds": _SECONDS,
    }
    _VISITOR(key=_KEY, data=data, presses={"known": _adopt})


def _adopt(known):
    state.keep_view_next_run()
    if isinstance(known, str):
        ownership.adopt(known)
