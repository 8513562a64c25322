"""The page's frame in the HTML that the server sends: a visitor sees it before Streamlit's scripts have run.

Streamlit's own HTML is empty, and its scripts take a second or more to draw anything.
"""

import base64
from string import Template

import streamlit as st
from starlette.types import ASGIApp, Receive, Scope, Send

from ui.first_paint import ICON, SKELETON, TITLE
from ui.shell.limits import ROOT

#: A colour of the frame -> the option of the theme, in .streamlit/config.toml.
_COLOURS = {
    "background": "backgroundColor",
    "text": "textColor",
    "border": "borderColor",
    "sidebar": "sidebar.backgroundColor",
}
_EMPTY_PAGE = b'<div id="root"></div>'  # in Streamlit's index.html


class FirstFrame:
    """Middleware that puts the name, the icon and the frame of the explorer into every HTML page of an ASGI app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._frame = frame()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if (
            scope["type"] != "http"
            or scope["method"] != "GET"
            or b"text/html" not in dict(scope["headers"]).get(b"accept", b"")
        ):
            await self._app(scope, receive, send)
            return
        # The page is to come whole, in plain text, so that something can be put into it.
        left_out = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")
        headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
        start, body = {}, []

        async def collect(message):
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                body.append(message.get("body", b""))
                if not message.get("more_body", False):
                    await self._answer(start, b"".join(body), send)

        await self._app({**scope, "headers": headers}, receive, collect)

    async def _answer(self, start, page, send):
        headers = dict(start["headers"])
        if headers.get(b"content-type", b"").startswith(b"text/html") and _EMPTY_PAGE in page:
            for old, new in self._frame.items():
                page = page.replace(old, new, 1)
            headers[b"content-length"] = str(len(page)).encode()
            for name in (b"etag", b"last-modified"):  # they would say that the file has not changed
                headers.pop(name, None)
        await send({**start, "headers": list(headers.items())})
        await send({"type": "http.response.body", "body": page})


def frame() -> dict[bytes, bytes]:
    """What stands in Streamlit's HTML -> what stands there for the explorer."""
    template = Template((ROOT / "assets" / "first_frame.html").read_text(encoding="utf-8"))
    colours = {
        f"{theme}_{name}": st.get_option(f"theme.{theme}.{option}")
        for theme in ("light", "dark")
        for name, option in _COLOURS.items()
    }
    drawn = template.substitute(colours, title=TITLE, skeleton=SKELETON)
    with open(ICON, "rb") as file:
        icon = base64.b64encode(file.read()).decode()
    return {
        b"<title>Streamlit</title>": f"<title>{TITLE}</title>".encode(),
        b'href="./favicon.png"': f'href="data:image/png;base64,{icon}"'.encode(),
        _EMPTY_PAGE: _EMPTY_PAGE + drawn.encode(),
    }
