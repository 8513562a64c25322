"""Fixtures: the explorer on a free port, and a headless Chromium that opens it."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from playwright.sync_api import expect, sync_playwright

import bert_tf
from benchmarks.installed_chromium import SHELL, find_chromium
from tests.app.conftest import LIMITS, save_tiny
from tests.browser.page_reading import PATIENCE, TEXTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
expect.set_options(timeout=PATIENCE)
WINDOW = {"width": 1440, "height": 900}
#: Holds Streamlit's signs of waiting still: Chromium draws each of their frames without a GPU, which takes the time of
#: the server that the page waits for.
STILL = """new MutationObserver((_, observer) => {
  if (document.head) {
    observer.disconnect();
    const sheet = document.createElement("style");
    sheet.textContent = ":is([data-testid=stSpinnerIcon], [data-testid=stSkeleton]) { animation: none !important; }";
    document.head.append(sheet);
  }
}).observe(document, { childList: true, subtree: true });"""


def pytest_collection_modifyitems(items):
    """Mark every test of this folder as a browser test, which runs a second time if it fails.

    See requirements-dev.txt.
    """
    for item in items:
        if pathlib.Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def server_home(tmp_path_factory):
    """The models folder of the explorer under test."""
    home = tmp_path_factory.mktemp("browser")
    save_tiny(home, "tiny-cased", "bert-base-cased-embedded", num_hidden_layers=3, num_attention_heads=4)
    save_tiny(home, "tiny-uncased", "bert-small-uncased-embedded", num_hidden_layers=2, num_attention_heads=2)
    (home / "explorer.toml").write_text(LIMITS)
    return home


@pytest.fixture(scope="session")
def bert(server_home):
    """The model that the explorer under test opens with."""
    return bert_tf.load(server_home / "tiny-cased")


@pytest.fixture(scope="session")
def trace(bert):
    """The trace of ``TEXTS`` with the mask that the tests' links have."""
    return bert.trace(*TEXTS, mask=["the"])


@pytest.fixture(scope="session")
def server(server_home):
    """The address of a running explorer with two small random models."""
    with serving(server_home) as address:
        yield address


@contextlib.contextmanager
def serving(home, **more):
    """Run an explorer with the models and limits in ``home``; the context is its address.

    Args:
        home: Path of the models folder. more: further environment variables.
    """
    with socket.socket() as free_port:
        free_port.bind(("127.0.0.1", 0))
        port = free_port.getsockname()[1]
    log = home / "streamlit.log"
    # An unreachable hub: the explorer must work without one.
    settings = {
        "BERT_TF_HOME": str(home),
        "BERT_TF_EXPLORER": str(home / "explorer.toml"),
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "HOME": str(home),
        **more,
    }
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "streamlit",
                "run",
                "app.py",
                "--server.port",
                str(port),
                "--server.headless",
                "true",
                "--server.address",
                "127.0.0.1",
            ],
            cwd=ROOT,
            env={**os.environ, **settings},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield _ready(f"http://127.0.0.1:{port}", process, log)
    finally:
        process.terminate()
        try:
            process.wait(120)
        finally:
            process.kill()
            process.wait()


def _ready(address, process, log):
    end = time.monotonic() + 240
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.fail(f"The explorer ended at once: {log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return address
        except OSError:
            time.sleep(0.25)
    pytest.fail(f"The explorer did not answer within four minutes: {log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium. The tests fail without one, as they would otherwise test nothing.

    The headless shell is Chromium without the windows around a page, which take a third of the processor time here. The
    optimizing compilers of JavaScript take an eighth: a page is left before its code was worth compiling. All pages of
    a context share one process, in which the scripts stay compiled as long as a page is open.
    """
    path = find_chromium(first=SHELL)
    if path is None:
        pytest.fail("There is no Chromium on the PATH; these tests need one: apt-get install chromium-headless-shell.")
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--process-per-site"]
        scripts = "--js-flags=--no-opt,--no-maglev"
        browser = playwright.chromium.launch(executable_path=path, args=[*options, scripts])
        yield browser
        browser.close()


class VisitorPage:
    """One visitor's page, which records the errors in its console and its requests to other hosts."""

    def __init__(self, page, server):
        self.page, self.server, self.wrong = page, server, []
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda message: message.type == "error" and self.wrong.append(message.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("request", self._check_request)

    def _check_request(self, request):
        if not request.url.startswith((self.server, self.server.replace("http", "ws"), "data:", "blob:")):
            self.wrong.append(f"requested {request.url}")

    def open(self, link="/"):
        self.page.goto(self.server + link)
        self.page.locator("#root").get_by_role("heading", level=1).wait_for()
        return self

    def fail_if_wrong(self):
        assert self.wrong == []


@pytest.fixture(scope="session")
def kept_context(chromium):
    """The context of the first visitor of every test: it keeps Streamlit's files, compiled, between the tests.

    Its first page is never a visitor's: it keeps their process alive.
    """
    context = chromium.new_context()
    context.add_init_script(STILL)
    yield context
    context.close()


@pytest.fixture
def visit(chromium, kept_context, server):
    """A function that opens a page for a new visitor; after the test no page may have an error."""
    visits = []

    def open_page(link="/", viewport=WINDOW, **media):
        if visits:
            context = chromium.new_context()
            context.add_init_script(STILL)
        else:
            context = kept_context
            if not context.pages:
                context.new_page().goto(f"{server}/_stcore/health")
        page = context.new_page()
        page.set_viewport_size(viewport)
        page.emulate_media(**{"color_scheme": "light", **media})
        visits.append(VisitorPage(page, server))
        return visits[-1].open(link)

    yield open_page
    for visitor_page in visits:
        context = visitor_page.page.context
        if context is kept_context:
            forget_visitor(context, server)
        else:
            context.close()
        visitor_page.fail_if_wrong()


def forget_visitor(context, server):
    """Close the visitor's pages of a context, and delete what they stored in the browser."""
    first, *pages = context.pages
    for page in pages:
        page.close()
    session = context.new_cdp_session(first)
    session.send("Storage.clearDataForOrigin", {"origin": server, "storageTypes": "local_storage,indexeddb"})
    session.detach()
    context.clear_cookies()
