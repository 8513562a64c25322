"""The start and the end of the server."""

import contextlib
import logging
import sys
import threading
import webbrowser

import streamlit as st
from streamlit import net_util
from streamlit.runtime.pages_manager import PagesManager

from bert_tf.startup import lean_tensorflow
from ui.server import restart, shutdown
from ui.session import memory_budget

_log = logging.getLogger("explorer")


@contextlib.asynccontextmanager
async def lifespan(app: st.App):
    """Make ready for the first visitor and open the browser; at the end leave without delay."""
    shutdown.prepare()
    memory_budget.prepare()
    lean_tensorflow()
    # Until a first run has called `st.navigation`, Streamlit would take the folder `pages` for its own kind of pages,
    # and answer a first link to /logit_lens by "Page not found".
    PagesManager.uses_pages_directory = False
    ask_nobody()
    threading.Thread(target=_prepare, daemon=True, name="preparation").start()
    if restart.is_first_start() and not st.get_option("server.headless"):
        webbrowser.open(address())
    yield
    shutdown.leave()


def ask_nobody() -> None:
    """Refuse a visitor from another site without asking a server on the internet for this machine's address.

    Streamlit would ask, and all visitors would wait.
    """
    net_util.get_external_ip = lambda: None


def address() -> str:
    """The address of the explorer for a browser on this machine."""
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    path = (st.get_option("server.baseUrlPath") or "").strip("/")
    host = st.get_option("browser.serverAddress")
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{st.get_option('server.port')}/{path}"


def quiet() -> None:
    """Keep uvicorn's lines about its own start and end off the terminal; Streamlit says where the page is."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def _prepare():
    from ui.session import model_store, state
    from ui.shell import catalogue
    from ui.shell.limits import LimitsError

    try:
        state.limits()
    except LimitsError as error:
        print(error, file=sys.stderr)
        shutdown.leave(2)
    catalogue.pages()
    for name in model_store.unknown_names():
        _log.warning("The limits name the model %s, which is not here: correct the name, or install it.", name)
    if state.limits().warm:
        for info in model_store.installed()[:1]:
            with contextlib.suppress(OSError, ValueError):  # the first visitor gets the message
                model_store.shared_model(info.name, state.limits().precision)
    if state.limits().restart:
        restart.watch()
