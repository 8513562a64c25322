"""The browser component that keeps the visitor's token in a cookie."""

from ui import ownership
from ui.elements.component_registry import register
from ui.session import state

_VISITOR = register("visitor")
_SECONDS = 365 * 24 * 3600


def draw():
    """Let the browser keep this visitor's token, where the limits let visitors change only their own trainings."""
    if not state.limits().delete_any:
        token = ownership.visitor_token()
        _VISITOR(key="c_visitor", data={"cookie": ownership.COOKIE, "token": token, "seconds": _SECONDS})
