"""The view of one visitor: kept in the session, copied into the address bar.

A link opens a view. After that the view in the session changes first, and the address is written from it. Widgets
change the view in callbacks: so a run that a widget starts does not take an old address, which the browser has not
updated yet, for a new link.
"""

import dataclasses
import math
import time
import urllib.parse

import streamlit as st
from streamlit.runtime import exists, get_instance

from ui.samples.examples import FIRST
from ui.shell.limits import Limits, read_limits
from ui.shell.server_cache import server_cache
from ui.shell.view import View, from_params, left_out, missing_page, to_params

_VIEW, _WRITTEN, _TOUCHED = "_view", "_written_params", "_touched"
_MISSING_PAGE = "_missing_page"
_OFFERED, _SENT_AT = "_offered", "_sent_at"
_SENT_VALUES, _RERUN, _REPLACED, _ENDED = "_given", "_again", "_replaced_params", "_ended"
# The keys of the widgets that this run has drawn, and those of the last complete run.
_DRAWN, _DRAWN_BEFORE = "_drawn", "_drawn_before"
# Pairs of the parameters of an address in which a text is left out, and its view; so many of them are kept.
_SHORTENED, _MOST_SHORTENED = "_shortened", 20
# For so many seconds a browser may still send the replaced address, with a run that the visitor did not start.
_LATE = 3.0
# For so many seconds a browser may still receive the value that a run has sent to a slider or a choice.
_UNDER_WAY = 1.0


@server_cache
def limits() -> Limits:
    """The deployment's limits, read once."""
    return read_limits()


def open_view() -> View:
    """The view of this run, read from the address if the address is a new link.

    Call it once at the top of a run, before any widget.
    """
    state = st.session_state
    params = st.query_params.to_dict()
    # A run that was interrupted by the next has not written the address: its changes of the view still count.
    touched = state.get(_TOUCHED, False)
    # The browser may not have drawn the widget values of an interrupted run: they are sent again.
    if not state.pop(_RERUN, False) and state.get(_ENDED, True):
        state[_SENT_VALUES] = set()
    state[_DRAWN] = set()
    state[_ENDED] = False
    fresh = _VIEW not in state
    if fresh or (params and not touched and params != state.get(_WRITTEN) and not _late(params)):
        state[_VIEW] = from_params(params, limits()) if fresh else _linked(params)
        state[_MISSING_PAGE] = missing_page(params)
        if fresh and not {"a", "b"} & params.keys():
            correct_view(a=FIRST.a, b=FIRST.b, masks=FIRST.masks)
            if not {"layer", "head"} & params.keys():
                correct_view(layer=FIRST.layer, head=FIRST.head)
    return state[_VIEW]


def page_not_found() -> str:
    """The page that a link asks for and that is not here, as long as the page is shown that it opened; else ""."""
    if view().page != View().page:
        st.session_state[_MISSING_PAGE] = ""
    return st.session_state.get(_MISSING_PAGE, "")


def open_link(query: str) -> None:
    """Open the view of a link to which the visitor went back or forward, however short a time ago it was left.

    Args:
        query: the part of the address after the path, with or without "?". Call it from a callback.
    """
    params = dict(urllib.parse.parse_qsl(query.removeprefix("?"), keep_blank_values=True))
    if params and params != st.session_state.get(_WRITTEN):
        replace_view(_linked(params))


def _linked(params):
    """The view of a link that is opened in this visit: with the texts that this visit has left out of the link, and
    with the settings of the other pages, which stand in no link."""
    written = [old for address, old in st.session_state.get(_SHORTENED, ()) if address == params]
    new = written[-1] if written else from_params(params, limits())
    others = [one for one in view().settings if not one[0].startswith(f"{new.page}.")]
    own = [one for one in new.settings if one[0].startswith(f"{new.page}.")]
    return dataclasses.replace(new, settings=tuple(sorted([*others, *own])))


def _late(params) -> bool:
    """Whether the address was replaced a moment ago, and the browser has not received the new one yet."""
    now = time.monotonic()
    replaced = [(old, when) for old, when in st.session_state.get(_REPLACED, ()) if now - when < _LATE]
    st.session_state[_REPLACED] = replaced
    return any(old == params for old, _ in replaced)


def view() -> View:
    """The current view."""
    return st.session_state[_VIEW]


def change_view(**values) -> None:
    """Change the view: ``change_view(layer=3)``. Call it only from a callback, or before the address is written."""
    replace_view(dataclasses.replace(view(), **values))


def replace_view(new: View) -> None:
    """Replace the view with ``new``."""
    st.session_state[_VIEW] = new
    st.session_state[_TOUCHED] = True


def is_changed() -> bool:
    """Whether a callback has changed the view since the last complete run."""
    return st.session_state.get(_TOUCHED, False)


def typed_text(key: str, before: str) -> str:
    """The text in a text field; for use in its callback. If the page has no such field, ``before``.

    If a run was interrupted by the next, the browser may not have filled the field yet, and reports an empty text. The
    result is ``before`` in this case too, so the text is not lost.
    """
    text = st.session_state.get(key, before) or ""
    return text if text or st.session_state.get(_ENDED, True) else before


def write_address() -> None:
    """Write the view into the address bar if it differs from the address. Call it at the end of a run."""
    st.session_state[_ENDED] = True
    st.session_state[_DRAWN_BEFORE] = st.session_state.get(_DRAWN, set())
    params = to_params(view(), limits())
    if left_out(view(), limits()):
        shortened = [one for one in st.session_state.get(_SHORTENED, ()) if one[0] != params]
        st.session_state[_SHORTENED] = [*shortened, (params, view())][-_MOST_SHORTENED:]
    before = st.query_params.to_dict()
    # This address was sent, and the browser has started a run with the one of before: the message is late, or the
    # visitor went back, which nav.js tells in the next run. To send the address again would undo the visitor's step.
    is_sent = params == st.session_state.get(_WRITTEN) and _late(before)
    st.session_state[_WRITTEN] = params
    st.session_state[_TOUCHED] = False
    if before != params and not is_sent:
        st.session_state.setdefault(_REPLACED, []).append((before, time.monotonic()))
        st.query_params.from_dict(params)


def bind_field(name: str, key: str, read=lambda value: value, show=lambda value: value, offered=None) -> dict:
    """Keyword arguments that bind a widget to one field of the view.

    The widget's value is set from the view before the widget is drawn. When the visitor changes it, the view changes
    before the rest of the run. So widget and view always agree.

    Args:
        name: field of the view.
        key: the widget's key.
        read: callable, widget's value -> field's value. If the widget's value is None, the field stays unchanged.
        show: callable, field's value -> widget's value.
        offered: the values or labels that the widget offers, see ``set_widget``.
    """
    set_widget(key, show(getattr(view(), name)), offered)

    def pull():
        value = st.session_state[key]
        if value is not None:
            change_view(**{name: read(value)})

    return {"key": key, "on_change": pull}


def set_widget(key: str, value, offered=None) -> None:
    """Set a widget's value before it is drawn.

    If a browser receives a value and then, before it has drawn the widget, a run without the value, it shows an empty
    widget and reports the empty value as the visitor's choice. So the value is sent again in every run that the visitor
    did not start.

    A slider with other bounds is a new widget for the browser, and a choice among other labels loses its old one: both
    would show their first value. So the value is sent again when ``offered`` changes.

    A widget that the last run has not drawn, as it waited for a file, is a new one for the browser too.

    If the visitor moves a slider while such a value is under way, the browser draws the value that was sent, and the
    page has the visitor's. So for a second after it the visitor's runs send the value of the page too.

    Args:
        key: the widget's key.
        value: the widget's value.
        offered: iterable of the values or labels that the widget offers; None if they never change.
    """
    sent = st.session_state.setdefault(_SENT_VALUES, set())
    st.session_state.setdefault(_DRAWN, set()).add(key)
    if key not in st.session_state.get(_DRAWN_BEFORE, ()):
        sent.add(key)
    if offered is not None:
        before = st.session_state.setdefault(_OFFERED, {})
        offered = tuple(offered)
        if before.get(key) != offered:
            before[key] = offered
            sent.add(key)
    if key in sent or key not in st.session_state or st.session_state[key] != value:
        sent.add(key)
        st.session_state[key] = value
        if offered is not None:
            st.session_state.setdefault(_SENT_AT, {})[key] = time.monotonic()
    elif time.monotonic() - st.session_state.get(_SENT_AT, {}).get(key, -_UNDER_WAY) < _UNDER_WAY:
        st.session_state[key] = value


def rerun() -> None:
    """Run the page again without an action of the visitor: the browser may not have drawn the last run yet."""
    keep_view_next_run()
    st.rerun()


def keep_view_next_run() -> None:
    """Note that the visitor does not start the next run, and keep the view in it. Call it only from a callback.

    The browser may start that run before it has received the address of the last one.
    """
    st.session_state[_RERUN] = st.session_state[_TOUCHED] = True


def setting(name: str, default):
    """A setting of one page, "page.name", as a value of the type of ``default`` (str, int, float or bool).

    If the link's text is not of this type, the result is the default.
    """
    return _parsed(view().setting(name), default)


def set_setting(name: str, value, default) -> None:
    """Change a setting of one page; a setting at its default is not in the link. Call it only from a callback."""
    replace_view(view().with_setting(name, None if value == default else _written(value)))


@dataclasses.dataclass(frozen=True)
class Between:
    """The container of the numbers from ``low`` to ``high``, for `bind_setting`."""

    low: float
    high: float

    def __contains__(self, value) -> bool:
        return self.low <= value <= self.high


def bind_setting(name: str, key: str, default, allowed=None, labels=None) -> dict:
    """Keyword arguments that bind a widget to a setting of one page, as ``bind_field`` does to a field of the view.

    Args:
        name: "page.name".
        key: the widget's key.
        default: the value if the link does not have the setting. If it takes time to compute, give a callable () ->
            str: it is called only if the link has no allowed value.
        allowed: container of the allowed values; any other value in a link is replaced by the default. None: all.
        labels: the labels of the allowed values if the same values may get other labels, see ``set_widget``.
    """
    if callable(default):
        own = view().setting(name)
        is_needed = own is None or (allowed is not None and own not in allowed)
        default = default() if is_needed else own
    value_in_link = setting(name, default)
    if allowed is not None and value_in_link not in allowed:
        value_in_link = default
    set_widget(key, value_in_link, allowed if labels is None else labels)

    def pull():
        is_text = isinstance(default, str) and allowed is None
        value = typed_text(key, setting(name, default)) if is_text else st.session_state[key]
        if value is not None:
            set_setting(name, value, default)

    return {"key": key, "on_change": pull}


def bind_kept(key: str, default, allowed=None) -> dict:
    """Keyword arguments that bind a widget to a value of this visit, which stands in no link.

    The value is kept while another page is open, where the widget is not drawn.

    Args:
        key: the widget's key. default: the value before the visitor changes it.
        allowed: container of the allowed values, as in ``bind_setting``.
    """
    place = f"_kept_{key}"

    def kept():
        value = st.session_state.get(place, default)
        return value if allowed is None or value in allowed else default

    set_widget(key, kept(), allowed)

    def pull():
        is_text = isinstance(default, str) and allowed is None
        value = typed_text(key, kept()) if is_text else st.session_state[key]
        if value is not None:
            st.session_state[place] = value

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
    # "nan" and "inf" are floats too, but no slider can show them.
    return value if not isinstance(value, float) or math.isfinite(value) else default


def is_here(session: str) -> bool:
    """Whether a session is active. After the visitor closed the tab it is not, nor while the connection of its browser
    is lost: the browser may come back. Without a server always True."""
    return not exists() or get_instance().is_active_session(session)


def is_dark() -> bool:
    """Whether the visitor's page has a dark theme."""
    return st.context.theme.type == "dark"


def correct_view(**values) -> None:
    """Correct the view during a run, as for a model that is not installed or a layer that the model does not have."""
    st.session_state[_VIEW] = dataclasses.replace(view(), **values)
