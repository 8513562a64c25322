"""One visitor's view: kept in the session, mirrored in the address bar.

A link opens a view; from then on the session leads and the address follows. Widgets report through
callbacks, so that a run started by a widget never takes an address that the browser has not updated yet
for a new link.
"""

import dataclasses
import math
import time

import streamlit as st
from streamlit.runtime import exists, get_instance

from ui.samples.examples import FIRST
from ui.shell.limits import Limits, read_limits
from ui.shell.view import View, from_params, to_params

_VIEW, _WRITTEN, _TOUCHED = "_view", "_written_params", "_touched"
_GIVEN, _AGAIN, _REPLACED, _ENDED = "_given", "_again", "_replaced_params", "_ended"
# Seconds in which a browser may still send the address that was replaced, with a run that nobody asked for.
_LATE = 3.0


@st.cache_resource(show_spinner=False)
def limits() -> Limits:
    """The deployment's limits, read once."""
    return read_limits()


def open_view() -> View:
    """The view of this run, taken from the address where it is a new link.

    Call once at the top of a run, before any widget.
    """
    state = st.session_state
    params = st.query_params.to_dict()
    # A run that another one cuts short has not written the address: what was changed for it still leads.
    touched = state.get(_TOUCHED, False)
    # What was given in a run that was cut short may never have been drawn: it goes along again.
    if not state.pop(_AGAIN, False) and state.get(_ENDED, True):
        state[_GIVEN] = set()
    state[_ENDED] = False
    fresh = _VIEW not in state
    if fresh or (params and not touched and params != state.get(_WRITTEN) and not _late(params)):
        state[_VIEW] = from_params(params, limits())
        if fresh and not {"a", "b"} & params.keys():
            correct_view(a=FIRST.a, b=FIRST.b, masks=FIRST.masks)
    return state[_VIEW]


def _late(params) -> bool:
    """Whether the address is one that was replaced a moment ago: the browser has not heard of it yet."""
    now = time.monotonic()
    replaced = [one for one in st.session_state.get(_REPLACED, ()) if now - one[1] < _LATE]
    st.session_state[_REPLACED] = replaced
    return any(old == params for old, _ in replaced)


def view() -> View:
    """The view as it stands."""
    return st.session_state[_VIEW]


def change_view(**values) -> None:
    """Change the view: ``change_view(layer=3)``. Only from a callback, or before the address is written."""
    replace_view(dataclasses.replace(view(), **values))


def replace_view(new: View) -> None:
    """Put ``new`` in the place of the view."""
    st.session_state[_VIEW] = new
    st.session_state[_TOUCHED] = True


def typed_text(key: str, before: str) -> str:
    """What stands in a text field, from its callback; ``before`` where the page has no such field.

    A field that the browser had no time to fill, as the run was cut short by the next, reports itself as empty:
    the text is not lost for that.
    """
    text = st.session_state.get(key, before) or ""
    return text if text or st.session_state.get(_ENDED, True) else before


def write_address() -> None:
    """Mirror the view in the address bar, if it differs; the last act of a run."""
    st.session_state[_ENDED] = True
    params = to_params(view(), limits())
    st.session_state[_WRITTEN] = params
    st.session_state[_TOUCHED] = False
    before = st.query_params.to_dict()
    if before != params:
        st.session_state.setdefault(_REPLACED, []).append((before, time.monotonic()))
        st.query_params.from_dict(params)


def bind_field(name: str, key: str, read=lambda value: value, show=lambda value: value) -> dict:
    """Keyword arguments that tie a widget to one field of the view.

    The widget's own state is set from the view before it is drawn, and its change goes into the view
    before anything else of the run: there is one truth.

    Args:
        name: field of the view.
        key: the widget's key.
        read: widget's value -> field's value; None from a widget means "leave it".
        show: field's value -> widget's value.
    """
    set_widget(key, show(getattr(view(), name)))

    def pull():
        value = st.session_state[key]
        if value is not None:
            change_view(**{name: read(value)})

    return {"key": key, "on_change": pull}


def set_widget(key: str, value) -> None:
    """Set a widget's value before it is drawn.

    A browser that is given a value and then, before it has drawn it, a run without one, shows an empty widget
    and reports that as the visitor's wish. So it goes along with every run the visitor did not ask for.
    """
    given = st.session_state.setdefault(_GIVEN, set())
    if key in given or key not in st.session_state or st.session_state[key] != value:
        given.add(key)
        st.session_state[key] = value


def rerun() -> None:
    """Run the page again, though the visitor has done nothing: the last run may not have been drawn yet."""
    keep_view_next_run()
    st.rerun()


def keep_view_next_run() -> None:
    """Say of the next run that the visitor has not asked for it. From a callback.

    The browser may send it before it has the address of the run before: the view stays.
    """
    st.session_state[_AGAIN] = st.session_state[_TOUCHED] = True


def setting(name: str, default):
    """A page's own setting, "page.name", as a value of the type of ``default`` (str, int, float or bool).

    What a link says and cannot be read as such a value is the default.
    """
    return _parsed(view().setting(name), default)


def set_setting(name: str, value, default) -> None:
    """Change a page's own setting; at its default it leaves the link. Only from a callback."""
    replace_view(view().with_setting(name, None if value == default else _written(value)))


def bind_setting(name: str, key: str, default, allowed=None) -> dict:
    """Keyword arguments that tie a widget to a page's own setting, as ``bind_field`` does to a field of the view.

    Args:
        name: "page.name".
        key: the widget's key.
        default: its value where the link says nothing.
        allowed: container of the values that there are; a link's other value becomes the default.
    """
    wanted = setting(name, default)
    if allowed is not None and wanted not in allowed:
        wanted = default
    set_widget(key, wanted)

    def pull():
        written = isinstance(default, str) and allowed is None
        value = typed_text(key, setting(name, default)) if written else st.session_state[key]
        if value is not None:
            set_setting(name, value, default)

    return {"key": key, "on_change": pull}


def _written(value):
    return str(int(value)) if isinstance(value, bool) else str(value)


def _parsed(text, default):
    if text is None:
        return default
    if isinstance(default, bool):
        return {"0": False, "1": True}.get(text, default)
    try:
        value = type(default)(text)
    except ValueError:
        return default
    # "nan" and "inf" are floats too, and no slider knows them.
    return value if not isinstance(value, float) or math.isfinite(value) else default


def is_here(session: str) -> bool:
    """Whether the visitor of a session is still there: one whose tab is closed is not. Without a server all are."""
    return not exists() or get_instance().is_active_session(session)


def is_dark() -> bool:
    """Whether the visitor's page has a dark theme."""
    return st.context.theme.type == "dark"


def correct_view(**values) -> None:
    """Correct the view during a run (a model that is not there, a layer it does not have)."""
    st.session_state[_VIEW] = dataclasses.replace(view(), **values)
