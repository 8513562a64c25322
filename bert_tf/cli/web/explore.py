"""`python -m bert_tf explore`: opens the explorer in the browser."""

import argparse
import importlib.util
import os
import subprocess
import sys

from bert_tf.errors import InputError
from bert_tf.files import explorer_folder

_EVERY_ADDRESS = ("0.0.0.0", "::")  # this machine reaches them as localhost


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `explore` to an `argparse` parser."""
    parser.add_argument("--port", type=int, default=8501, metavar="N", help="port of the page (default 8501)")
    parser.add_argument(
        "--address",
        metavar="A",
        help="address to listen at (default localhost: only this machine; 0.0.0.0 for everyone who reaches it)",
    )
    parser.add_argument(
        "--base-path", metavar="PATH", help="path of the page behind a reverse proxy, for example /bert"
    )
    limits = parser.add_mutually_exclusive_group()
    limits.add_argument(
        "--public", action="store_true", help="use the limits of explorer.public.toml: no trainings, no downloads"
    )
    limits.add_argument("--limits", metavar="FILE", help="use the limits of a file with the keys of explorer.toml")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def run(args: argparse.Namespace) -> int:
    """Runs Streamlit with the explorer until it is stopped. Returns: exit code."""
    if importlib.util.find_spec("streamlit") is None:
        raise InputError("The explorer needs Streamlit; install it with `pip install streamlit`.")
    if not 1 <= args.port <= 65535:
        raise InputError(f"--port must be from 1 to 65535, not {args.port}.")
    environment = dict(os.environ)
    if args.public:
        environment["BERT_TF_EXPLORER"] = str(explorer_folder() / "explorer.public.toml")
    if args.limits is not None:
        if not os.path.isfile(args.limits):
            raise InputError(f"There is no file {args.limits}; explorer.toml is an example of such a file.")
        environment["BERT_TF_EXPLORER"] = os.path.abspath(args.limits)
    command = [sys.executable, "-m", "streamlit", "run", str(explorer_folder() / "app.py"), *_options(args)]
    if os.name == "posix":
        # The same process goes on as Streamlit, so that a signal to it, as of `docker stop`, reaches the server.
        os.execve(sys.executable, command, environment)
    return subprocess.call(command, env=environment)


def _options(args):
    """The options of `streamlit run`; the others are in .streamlit/config.toml beside app.py."""
    options = {"server.port": args.port, "server.headless": "true" if args.no_browser else "false"}
    if args.address is not None:
        options["server.address"] = args.address
        if args.address not in _EVERY_ADDRESS:
            options["browser.serverAddress"] = args.address  # which the terminal names and the browser opens
    if args.base_path is not None:
        options["server.baseUrlPath"] = args.base_path.strip("/")
    return [f"--{name}={value}" for name, value in options.items()]
