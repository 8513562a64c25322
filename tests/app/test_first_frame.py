"""The HTML page has the explorer's name, icon and frame; everything else that the server sends is left as it is."""

import base64
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import RedirectResponse
from starlette.testclient import TestClient
from streamlit import file_util
from streamlit.web.server.starlette.starlette_gzip_middleware import SelectiveGZipMiddleware
from streamlit.web.server.starlette.starlette_static_routes import create_streamlit_static_assets_routes

from ui import first_paint
from ui.server import first_frame, lifespan

BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9"}


@pytest.fixture(scope="module")
def server():
    """Streamlit's own files behind its compression and the frame."""
    middleware = [Middleware(first_frame.FirstFrame), Middleware(SelectiveGZipMiddleware, minimum_size=500)]
    return TestClient(Starlette(routes=create_streamlit_static_assets_routes(""), middleware=middleware))


@pytest.mark.parametrize("path", ["/", "/index.html", "/logit_lens", "/?page=attention"])
def test_every_page_opens_with_the_frame(server, path):
    page = server.get(path, headers=BROWSER)
    assert page.status_code == 200 and int(page.headers["content-length"]) == len(page.content)
    assert "<title>BERT explorer</title>" in page.text and "favicon.png" not in page.text
    before, _, after = page.text.partition('<div id="root"></div>')
    assert 'src="./static/js/index.' in before and "<h1>BERT explorer</h1>" in after and first_paint.SKELETON in after
    assert "$" not in first_frame.frame()[b'<div id="root"></div>'].decode()
    icon = page.text.partition("data:image/png;base64,")[2].partition('"')[0]
    with open(first_paint.ICON, "rb") as file:
        assert base64.b64decode(icon) == file.read()


def test_a_page_in_the_browser_s_cache_is_sent_anew(server):
    # Streamlit's file may be the same while the frame is another.
    first = server.get("/", headers=BROWSER)
    assert "etag" not in first.headers and "last-modified" not in first.headers
    tag = server.get("/").headers["etag"]
    assert server.get("/", headers={"if-none-match": tag}).status_code == 304
    assert server.get("/", headers={**BROWSER, "if-none-match": tag}).text == first.text


def test_what_is_no_page_stays_as_it_is(server):
    folder = Path(file_util.get_static_dir())
    assert server.get("/index.html").content == (folder / "index.html").read_bytes()
    script = next(folder.glob("static/js/index.*.js"))
    assert server.get(f"/static/js/{script.name}", headers=BROWSER).content == script.read_bytes()
    redirect = server.get("/logit_lens/?a=b", headers=BROWSER, follow_redirects=False)
    assert redirect.status_code == 301 and redirect.headers["location"] == "/logit_lens?a=b"


def test_an_answer_that_is_no_page_keeps_all_its_headers():
    async def signed_in(scope, receive, send):
        answer = RedirectResponse("/")
        answer.set_cookie("one", "1")
        answer.set_cookie("two", "2")
        await answer(scope, receive, send)

    answer = TestClient(first_frame.FirstFrame(signed_in)).get(
        "/oauth2callback", headers=BROWSER, follow_redirects=False
    )
    assert answer.status_code == 307 and set(answer.cookies) == {"one", "two"}


def test_the_browser_opens_at_the_address_of_the_server(monkeypatch):
    options = {"browser.serverAddress": "localhost", "server.port": 8502, "server.baseUrlPath": "/bert/"}
    monkeypatch.setattr(lifespan.st, "get_option", options.get)
    assert lifespan.address() == "http://localhost:8502/bert"
    options.update({"server.sslCertFile": "cert.pem", "server.baseUrlPath": ""})
    assert lifespan.address() == "https://localhost:8502/"
    options["browser.serverAddress"] = "::1"
    assert lifespan.address() == "https://[::1]:8502/"
