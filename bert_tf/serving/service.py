"""The routes of the service, as a Starlette application."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

import bert_tf
from bert_tf.checkpoints import list_models
from bert_tf.errors import CheckpointError, InputError, TaskError, TextError, check_text, checked_pair
from bert_tf.finetuning.data.multiple_choice_examples import count_choices
from bert_tf.inference.predictions import check_top_k
from bert_tf.serving.analysis_request import answer as analysis_answer
from bert_tf.serving.analysis_request import check_lengths, checked_length, served_analyses
from bert_tf.serving.limits import ServiceLimits
from bert_tf.serving.metrics import Metrics
from bert_tf.serving.model_store import ModelStore
from bert_tf.serving.openapi import overview_page, specification
from bert_tf.serving.problems import RequestProblem
from bert_tf.user_errors import is_user_error

_UPLOAD = 30.0  # seconds within which the whole request must have come
_LOOK = 1.0  # seconds between two looks whether the client still waits
_LOG = logging.getLogger("bert_tf.serving")
_PREDICT_KEYS = ("model", "text_a", "text_b", "mask", "top_k", "targets", "inputs")
_FEATURE_KEYS = ("model", "text_a", "text_b", "inputs", "pooling", "layer", "length")
_EXPLAIN_KEYS = ("model", "text_a", "text_b", "mask", "rows", "target", "options")


class Service:
    """What the routes share.

    Args:
        store: `ModelStore`.
        limits: `ServiceLimits`.
    """

    def __init__(self, store: ModelStore, limits: ServiceLimits) -> None:
        self.store, self.limits, self.metrics = store, limits, Metrics()
        # Analyses and vectors have no batches: one after the other they leave the cores to the predictions. One that
        # has begun ends before the next begins, even if its client goes.
        self._one_at_a_time = ThreadPoolExecutor(1, "analyses")
        # Models are loaded one after the other: who waits for one takes no thread from the requests of loaded models.
        self._loading = ThreadPoolExecutor(1, "loading")

    async def predict(self, request: Request) -> Any:
        """POST /predict."""
        body = await self._body(request, _PREDICT_KEYS)
        top_k = 5 if body.get("top_k") is None else body["top_k"]
        targets = _words(body.get("targets"), "targets")
        check_lengths(list(targets), "targets", self.limits)
        check_top_k(top_k)
        if top_k > self.limits.max_top_k:
            raise InputError(f"top_k must be at most {self.limits.max_top_k}, not {top_k}.")
        rows, single = self._inputs(body, self._row, ("text_a", "text_b", "mask"))
        served = await self._served(request, body.get("model"))
        await run_in_threadpool(self._check_predictions, rows, top_k, len(targets), served.bert.tokenizer)
        results = await self._batched(request, served.predictions.submit((top_k, targets), rows), single)
        answers = await run_in_threadpool(
            lambda: [result if isinstance(result, dict) else result.to_dict() for result in results]
        )
        return answers[0] if single else {"answers": answers}

    async def task(self, request: Request) -> Any:
        """POST /tasks/{model}."""
        body = await self._body(request)
        records, single = self._inputs(body, self._record)
        served = await self._served(request, request.path_params["model"])
        if served.bert.task is None:
            raise RequestProblem(404, f"{served.bert.name} is not fine-tuned for a task; ask /predict instead.")
        answers = await self._batched(request, served.answers.submit("task", records), single)
        return answers[0] if single else {"answers": answers}

    async def features(self, request: Request) -> Any:
        """POST /features."""
        body = await self._body(request, _FEATURE_KEYS)
        rows, single = self._inputs(body, self._pair, ("text_a", "text_b"))
        pooling, layer, length = body.get("pooling"), body.get("layer"), body.get("length")
        layer = -1 if layer is None else layer
        if length is not None and (type(length) is not int or length < 3):
            raise InputError(f"length must be a whole number of at least 3, not {str(length)[:80]}.")
        served = await self._served(request, body.get("model"))

        def compute():
            from bert_tf.inference.sentence_vectors import sentence_vectors

            errors, size = "raise" if single else "return", self.limits.batch_size
            vectors = sentence_vectors(served.bert, rows, pooling, layer, size, length, errors=errors)
            return [
                {"error": _sentence(vector)} if isinstance(vector, Exception) else vector.tolist() for vector in vectors
            ]

        vectors = await self._alone(request, compute)
        answer = {"vector": vectors[0]} if single else {"vectors": vectors}
        from bert_tf.inference.sentence_vectors import pooling_of

        return {"model": served.bert.name, "pooling": pooling_of(served.bert, pooling), "layer": layer, **answer}

    async def explain(self, request: Request) -> Any:
        """POST /explain/{analysis}."""
        body = await self._body(request, _EXPLAIN_KEYS)
        name = request.path_params["analysis"]

        def compute():
            return analysis_answer(name, body, self.store, self.limits)

        return await self._alone(request, compute)

    async def models(self, request: Request) -> Any:
        """GET /models."""
        return {"default": self.store.default, "models": await run_in_threadpool(self._models)}

    def _models(self):
        offered, loaded = self.limits.models, self.store.loaded()
        return [
            {
                "name": model.name,
                "parameters": model.parameters,
                "heads": None if model.heads is None else sorted(model.heads),
                "task": _task(model.path),
                "licence": model.licence,
                "loaded": model.name in loaded,
            }
            for model in list_models()
            if model.installed and not model.problem and (not offered or model.name in offered)
        ]

    async def health(self, request: Request) -> Any:
        """GET /health."""
        return {"status": "ok", "version": bert_tf.__version__, "loaded": self.store.loaded()}

    async def content(self, request: Request) -> bytes:
        """The bytes of a request. Raises: RequestProblem if they are too many or come too slowly."""

        async def read():
            content = bytearray()
            async for chunk in request.stream():
                content += chunk
                if len(content) > self.limits.max_body_bytes:
                    raise RequestProblem(413, f"A request has at most {self.limits.max_body_bytes:,} bytes.")
            return bytes(content)

        try:
            return await asyncio.wait_for(read(), _UPLOAD)
        except TimeoutError:
            raise RequestProblem(408, f"The request did not come within {_UPLOAD:.0f} seconds.") from None
        except ClientDisconnect:
            raise _gone() from None

    async def _body(self, request, keys=None):
        try:
            body = json.loads(request.state.content)
        except (ValueError, RecursionError) as error:
            raise RequestProblem(400, f"The request is not JSON: {error}.") from None
        if not isinstance(body, dict):
            raise RequestProblem(400, "The request must be a JSON object.")
        if keys is not None and body.keys() - set(keys):
            unknown = sorted(body.keys() - set(keys))
            raise RequestProblem(400, f"Unknown keys: {', '.join(unknown)[:80]}; known are {', '.join(keys)}.")
        return body

    def _inputs(self, body, read, keys=None):
        """(The rows of "inputs", or the one that the request itself is; whether it is one).

        An object among "inputs" may have these keys; any with None.
        """
        single = "inputs" not in body
        inputs = [body] if single else body["inputs"]
        if not single and (both := [key for key in keys or () if key in body]):
            raise RequestProblem(400, f'"inputs" holds all inputs: leave {both[0]} out of the request beside it.')
        if not isinstance(inputs, list) or not inputs:
            raise InputError('"inputs" must be a list with at least one input.')
        if len(inputs) > self.limits.max_inputs:
            raise RequestProblem(
                413, f"There are {len(inputs)} inputs, but at most {self.limits.max_inputs} in one request."
            )
        self.metrics.count_inputs(len(inputs))
        rows = []
        for item in inputs:
            try:
                if not single and keys and isinstance(item, dict) and item.keys() - set(keys):
                    unknown = ", ".join(sorted(item.keys() - set(keys)))
                    raise InputError(f"Unknown keys: {unknown[:80]}; known in an input are {', '.join(keys)}.")
                rows.append(read(item))
            except (InputError, TextError) as error:
                if single:
                    raise
                rows.append(error)  # the other inputs are answered
        return rows, single

    def _pair(self, item):
        if isinstance(item, str):
            item = {"text_a": item}
        if not isinstance(item, dict):
            raise InputError('An input must be a text, or an object with "text_a".')
        texts = {name: checked_length(item.get(name), name, self.limits) for name in ("text_a", "text_b")}
        for name, text in texts.items():
            if text is not None:
                check_text(text, name)
        return checked_pair(**texts)

    def _row(self, item):
        pair = self._pair(item)
        mask = item.get("mask") if isinstance(item, dict) else None
        for word in mask if isinstance(mask, list) else (mask,):
            if isinstance(word, str):
                check_text(checked_length(word, "mask", self.limits), "mask")
        return *pair, [] if mask is None else mask

    def _record(self, item):
        if isinstance(item, str):
            item = {"text": item, "text_a": item}
        if not isinstance(item, dict):
            raise InputError("An input must be a text or an object.")
        for name, value in item.items():
            check_lengths(value, name, self.limits)
        if (choices := count_choices(item)) > self.limits.max_inputs:
            raise RequestProblem(
                413, f"An input has {choices:,} choices, but at most {self.limits.max_inputs:,} are read together."
            )
        if "text_a" in item and "text_b" not in item:
            item = {"text": item["text_a"], **item}
        return item

    def _check_predictions(self, rows, top_k, targets, tokenizer):
        """Refuse a request whose answer would be too large: the masks in its texts and those that it names.

        Each mask has `top_k` predictions and as many more as there are `targets`. These are looked up even if there is
        no mask.
        """
        masks = sum(_masks(row, tokenizer) for row in rows if not isinstance(row, Exception))
        if max(masks, 1) * (top_k + targets) > self.limits.max_predictions:
            raise RequestProblem(
                413,
                f"The request has {masks:,} masks and asks for {top_k + targets:,} predictions at each, but at most "
                f"{self.limits.max_predictions:,} in all: send fewer inputs, fewer targets or a lower top_k.",
            )

    async def _alone(self, request, compute):
        """The result of a function, one after the other, unless the client goes before it begins."""
        return await _for_client(request, asyncio.wrap_future(self._one_at_a_time.submit(compute)))

    async def _served(self, request, name):
        served = await run_in_threadpool(self.store.get_loaded, name)
        if served is None:
            served = await _for_client(request, asyncio.wrap_future(self._loading.submit(self.store.get, name)))
        return served

    async def _batched(self, request, futures, single):
        waits = [asyncio.wrap_future(future) for future in futures]
        results = await _for_client(request, asyncio.gather(*waits, return_exceptions=not single))
        for result in results:
            if isinstance(result, BaseException) and not is_user_error(result):
                raise result
        return [{"error": _sentence(result)} if isinstance(result, BaseException) else result for result in results]


def _gone():
    """The error of a request whose client has gone; nginx counts it so, and nobody reads the answer."""
    return RequestProblem(499, "The client has gone.")  # a new one each time: a raised error holds its frames


async def _for_client(request, future):
    """The result of a future, which is cancelled if the client goes or the service ends."""
    try:
        while not (await asyncio.wait({future}, timeout=_LOOK))[0]:
            if await request.is_disconnected():
                raise _gone()
        return future.result()
    except asyncio.CancelledError:  # at its end the service cancels the requests that still wait
        raise RequestProblem(503, "The service is ending.") from None
    finally:
        future.add_done_callback(_look_at_error)
        future.cancel()


def _look_at_error(future):
    """Nobody reads the result of a request whose client has gone; asyncio would log its error as a defect."""
    if not future.cancelled():
        future.exception()


def application(store: ModelStore, limits: ServiceLimits) -> Starlette:
    """The ASGI application.

    Args:
        store: `ModelStore`. limits: `ServiceLimits`.

    Returns: `starlette.applications.Starlette`.
    """
    service = Service(store, limits)
    described = json.dumps(specification(served_analyses(), limits), ensure_ascii=False)

    async def openapi(request):
        return Response(described, media_type="application/json")

    async def overview(request):
        return HTMLResponse(overview_page(served_analyses(), str(request.base_url)))

    async def metrics(request):
        text = service.metrics.text(store.loaded())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    app = Starlette(
        routes=[
            Route("/", overview),
            Route("/openapi.json", openapi),
            Route("/metrics", metrics),
            Route("/health", _answering(service, service.health, limited=False)),
            Route("/models", _answering(service, service.models)),
            Route("/predict", _answering(service, service.predict), methods=["POST"]),
            Route("/features", _answering(service, service.features), methods=["POST"]),
            Route("/explain/{analysis}", _answering(service, service.explain), methods=["POST"]),
            Route("/tasks/{model}", _answering(service, service.task), methods=["POST"]),
        ],
        exception_handlers={HTTPException: _unknown_route},
    )
    app.router.redirect_slashes = False
    return app


def _task(folder):
    """What a model was fine-tuned for, one of `TASKS`; None for a model without a task, or with a damaged task.json."""
    from bert_tf.finetuning.task_settings import read_settings

    try:
        settings = None if folder is None else read_settings(folder)
    except (CheckpointError, TaskError):
        return None
    return settings and settings.task


def _unknown_route(request, error):
    """The answer to a path or a method that the service does not have: JSON, as every other error."""
    path = request.url.path[:200]
    sentence = f"There is no {path} here; GET / lists what there is."
    if error.status_code == 405:
        sentence = f"{path} takes {error.headers['Allow']}, not {request.method}."
    return Response(_encoded({"error": sentence}), error.status_code, error.headers, media_type="application/json")


def _answering(service: Service, handler: Callable, limited: bool = True) -> Callable:
    """An endpoint: the answer of a handler as JSON, or the status and the sentence of its error; counted."""
    route = f"/{handler.__name__}"
    metrics = service.metrics

    async def endpoint(request):
        start, status, headers = time.perf_counter(), 200, {}
        try:
            # Before it counts as waiting: a slow upload takes nobody's place.
            request.state.content = await service.content(request)
            if limited and metrics.waiting >= service.limits.max_waiting:
                raise RequestProblem(503, f"{metrics.waiting} requests are being answered; try again in a second.")
            metrics.waiting += 1
            try:
                answer = await handler(request)
                # A small answer of a route without a limit needs no thread: all may be taken.
                text = await run_in_threadpool(_encoded, answer) if limited else _encoded(answer)
            finally:
                metrics.waiting -= 1
        except Exception as error:
            status = _status(error)
            headers = {"Retry-After": "1"} if status == 503 else {}
            text = _encoded({"error": _sentence(error) if status != 500 else "The service failed; its log says where."})
            if status == 500:
                _LOG.exception("%s failed", route)
        metrics.count(route, status, time.perf_counter() - start)
        return Response(text, status, headers, media_type="application/json")

    return endpoint


def _masks(row, tokenizer):
    """How many masks a row has: those typed in its texts, and the tokens and the pieces of the words that it names."""
    *texts, mask = row
    typed = sum(tokenizer.normalize_mask_token(text).count(tokenizer.mask_token) for text in texts if text)
    named = mask if isinstance(mask, list) else [mask]
    words = [item for item in named if isinstance(item, str)]
    return typed + len(named) - len(words) + sum(map(len, tokenizer.batch_ids(words, "exact")))


def _encoded(content):
    """The bytes of a JSON answer; half of a surrogate pair, which UTF-8 cannot write, becomes a question mark."""
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _status(error):
    if isinstance(error, RequestProblem):
        return error.status
    # An OSError may name a file of the server.
    return 400 if is_user_error(error) and not isinstance(error, OSError) else 500


def _sentence(error):
    return " ".join(str(error).split())


def _words(value, name):
    """The words of a key, each once."""
    value = [value] if isinstance(value, str) else value
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise InputError(f'"{name}" must be a word or a list of words.')
    return tuple(dict.fromkeys(value))
