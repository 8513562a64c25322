"""The page's frame in the HTML that the server sends: a visitor sees it before Streamlit's scripts have run.

Streamlit's own HTML is empty, and its scripts take a second or more to draw anything.
"""

import base64
from string import Template

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
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
            or "text/html" not in Headers(scope=scope).get("accept", "")
        ):
            await self._app(scope, receive, send)
            return
        # The page is to come whole, in plain text, so that something can be put into it.
        left_out = (b"accept-encoding", b"if-none-match", b"if-modified-since")
        headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
        held, parts = [], []  # the start of the answer if it is a page, and its parts so far

        async def answer(message):
            is_start = message["type"] == "http.response.start"
            if is_start and Headers(scope=message).get("content-type", "").startswith("text/html"):
                held.append(message)
            elif not held:
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    page = self._filled(held[0], b"".join(parts))
                    await send(held[0])
                    await send({"type": "http.response.body", "body": page})

        await self._app({**scope, "headers": headers}, receive, answer)

    def _filled(self, start, page):
        """The page with the frame in it; the headers in ``start`` follow. A page of another kind stays as it is."""
        if _EMPTY_PAGE not in page:
            return page
        for old, new in self._frame.items():
            page = page.replace(old, new, 1)
        headers = MutableHeaders(scope=start)
        headers["content-length"] = str(len(page))
        for name in ("etag", "last-modified"):  # they would say that the file has not changed
            del headers[name]
        return page


def frame() -> dict[bytes, bytes]:
    """What stands in Streamlit's HTML -> what stands there for the explorer."""
    template, style = (
        (ROOT / "assets" / name).read_text(encoding="utf-8") for name in ("first_frame.html", "style.css")
    )
    colours = {
        f"{theme}_{name}": st.get_option(f"theme.{theme}.{option}")
        for theme in ("light", "dark")
        for name, option in _COLOURS.items()
    }
    drawn = Template(template).substitute(colours, style=style, title=TITLE, skeleton=SKELETON)
    with open(ICON, "rb") as file:
        icon = base64.b64encode(file.read()).decode()
    return {
        b"<title>Streamlit</title>": f"<title>{TITLE}</title>".encode(),
        b'href="./favicon.png"': f'href="data:image/png;base64,{icon}"'.encode(),
        _EMPTY_PAGE: _EMPTY_PAGE + drawn.encode(),
    }
