"""Who started a training from a page: only this visitor may pause, stop and delete it, and is told why it failed.

A visitor is known by a random token: in the session, and in a cookie that the browser sends with its next visit. A
training's folder holds the token's hash.
"""

import hashlib
import hmac
import re
import secrets

import streamlit as st

from ui.session import state

#: Name of the cookie with the visitor's token.
COOKIE = "bert_explorer_visitor"
_TOKEN = "_visitor_token"
_NEW = "_visitor_token_is_new"  # in the session: its token was made for it, and nothing was started with it
_FORM = "[0-9a-f]{32}"  # of a token
_OWNER = "owner.txt"  # in a training's folder: the SHA-256 hash of the token of the visitor who started it, in hex


def visitor_token() -> str:
    """The token of this visitor, 32 hex digits: that of the browser's cookie, else a new one for this session."""
    if _TOKEN not in st.session_state:
        known = str(st.context.cookies.get(COOKIE))
        st.session_state[_NEW] = not re.fullmatch(_FORM, known)
        st.session_state[_TOKEN] = secrets.token_hex(16) if st.session_state[_NEW] else known
    return st.session_state[_TOKEN]


def may_adopt() -> bool:
    """Whether `adopt` takes another token: this visit has had no cookie at its start, and has started nothing."""
    visitor_token()
    return st.session_state.get(_NEW, False)


def adopt(token: str) -> None:
    """Take the token that another tab of this browser has put into the cookie since this visit began."""
    if may_adopt() and re.fullmatch(_FORM, token):
        st.session_state[_TOKEN], st.session_state[_NEW] = token, False


def sign(folder) -> None:
    """Note in a training's folder that this visitor has started it; `owner` reads it."""
    (folder / _OWNER).write_text(_hash(visitor_token()), encoding="ascii")
    st.session_state[_NEW] = False


def may_change(folder) -> bool:
    """Whether this visitor may pause, stop and delete the training in a folder."""
    # Without an owner it was started before owners were noted: the owner of the server deletes the folder.
    return state.limits().delete_any or is_visitor(owner(folder))


def owner(folder) -> str | None:
    """The owner of a training by its folder, for `is_visitor`; None if the folder does not tell."""
    try:
        return (folder / _OWNER).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def is_visitor(owner: str | None) -> bool:
    """Whether this visitor is an ``owner``, as the function `owner` returns it."""
    return owner is not None and hmac.compare_digest(owner, _hash(visitor_token()))


def rule() -> str:
    """What everybody may do with a training, the end of a sentence."""
    who = "and may stop and delete it" if state.limits().delete_any else "and only your browser can stop and delete it"
    return f"everybody who opens this explorer sees what is trained, {who}."


def others_stay() -> str:
    """What is added to a request to delete a training: the visitor cannot delete those of others."""
    if state.limits().delete_any:
        return ""
    return " You can delete those that this browser has started; the others only the owner of this server can delete."


def _hash(token):
    return hashlib.sha256(token.encode()).hexdigest()
