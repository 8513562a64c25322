"""The browser component that keeps the visitor's token in a cookie."""

from ui import ownership
from ui.elements.component_registry import browser_value, register
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
    _VISITOR(key=_KEY, data=data, on_known_change=_adopt)


def _adopt():
    state.keep_view_next_run()
    known = browser_value(_KEY, "known")
    if isinstance(known, str):
        ownership.adopt(known)
