"""`python -m bert_tf serve`: a REST service over the models."""

from __future__ import annotations

import argparse
import dataclasses
import socket
import sys
from typing import TYPE_CHECKING

from bert_tf.cli.shared.model import add_precision_argument
from bert_tf.errors import InputError
from bert_tf.serving.limits import ServiceLimits
from bert_tf.startup import quiet_tensorflow
from bert_tf.user_errors import whole_number

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_GRACE = 10  # seconds after Ctrl-C or SIGTERM in which the requests that came before are answered
_HELP = {
    "max_megabytes": "megabytes of models in memory, with their compiled graphs",
    "max_body_bytes": "bytes of a request",
    "max_inputs": "texts or pairs of a request, and choices of each question",
    "max_characters": "characters of a text",
    "max_tokens": "tokens of the texts of an analysis",
    "max_top_k": "predictions at each mask",
    "max_predictions": "predictions at all masks of a request together, with its targets at each",
    "max_waiting": "requests that are answered or wait at the same time; further ones get status 503",
    "batch_size": "texts in one forward pass",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `serve` to an `argparse` parser."""
    parser.add_argument(
        "--model",
        metavar="M",
        help="name of the model that is loaded first and asked by default (default: the first of --offer, else Base)",
    )
    parser.add_argument("--offer", nargs="+", metavar="M", help="names of the models that may be asked (default: all)")
    add_precision_argument(parser)
    parser.add_argument("--address", default="127.0.0.1", metavar="A", help="address to listen at (default 127.0.0.1)")
    parser.add_argument("--port", type=whole_number(1, 65535), default=8600, metavar="N", help="port (default 8600)")
    parser.add_argument(
        "--base-path",
        default="",
        metavar="PATH",
        help="path below which it answers too, for a reverse proxy that keeps it; such as /api",
    )
    for field in dataclasses.fields(ServiceLimits):
        if field.name in _HELP:
            parser.add_argument(
                f"--{field.name.replace('_', '-')}",
                type=whole_number(1),
                default=field.default,
                metavar="N",
                help=f"{_HELP[field.name]} (default {field.default:,})",
            )


def run(args: argparse.Namespace) -> int:
    """Answers requests until it is stopped. Returns: exit code."""
    try:
        import uvicorn

        from bert_tf.serving.service import application
    except ModuleNotFoundError as error:
        raise InputError(f"The service needs Starlette and Uvicorn ({error}); Streamlit brings both.") from None
    from bert_tf.checkpoints import find
    from bert_tf.inference.bert import DEFAULT_MODEL
    from bert_tf.serving.model_store import ModelStore
    from bert_tf.serving.problems import RequestProblem

    quiet_tensorflow()
    values = {name: getattr(args, name) for name in _HELP}
    # Repositories and aliases lead to the names by which models are listed.
    limits = ServiceLimits(models=tuple(find(name, allow_paths=False).name for name in args.offer or ()), **values)
    default = find(args.model or (*limits.models, DEFAULT_MODEL)[0], allow_paths=False).name
    store = ModelStore(default, limits, args.precision)
    try:
        store.get()
    except RequestProblem as problem:
        raise InputError(str(problem)) from None
    root = f"/{args.base_path.strip('/')}" if args.base_path.strip("/") else ""
    address = f"[{args.address}]" if ":" in args.address else args.address
    with _listening(args.address, args.port) as listener:
        print(f"Serving {store.default} at http://{address}:{args.port}{root}/", file=sys.stderr)
        app = below(root, application(store, limits))
        config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE)
        uvicorn.Server(config).run(sockets=[listener])
    return 0


def below(root: str, app: ASGIApp) -> ASGIApp:
    """The ASGI application below a path, whether a reverse proxy keeps the path in its requests or leaves it out."""

    async def served(scope, receive, send):
        if scope["type"] == "http":
            path = scope["path"]
            if path == root or not path.startswith(f"{root}/"):
                path = root + (path if path != root else "/")
            scope = {**scope, "path": path, "root_path": root}
        await app(scope, receive, send)

    return served


def _listening(address, port):
    """A socket that listens at the port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.create_server((address, port), family=family)
    except OSError as error:
        raise InputError(
            f"Port {port} of {address} is not available ({error.strerror or error}); give another --port or --address."
        ) from None
