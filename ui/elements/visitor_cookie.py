"""The browser component that keeps the visitor's token in a cookie."""

from ui import ownership
from ui.elements.component_registry import register

_VISITOR = register("visitor")
_SECONDS = 365 * 24 * 3600


def draw():
    """Let the browser keep this visitor's token, so that a later visit knows what the visitor has started."""
    data = {"cookie": ownership.COOKIE, "token": ownership.visitor_token(), "seconds": _SECONDS}
    _VISITOR(key="c_visitor", data=data)
