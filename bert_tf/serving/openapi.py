"""The OpenAPI description of the service, made from the catalogue of analyses, and a page that lists its routes."""

from __future__ import annotations

import html
from typing import Any

import bert_tf
from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.inference.sentence_vectors import POOLINGS
from bert_tf.serving.analysis_request import TARGET_KEYS, keys_of, reads_texts
from bert_tf.serving.limits import ServiceLimits

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_STRING: dict[str, Any] = {"type": "string"}
_MODEL = {**_STRING, "description": "name of a model of GET /models; without it the default"}


def specification(analyses: dict[str, Analysis], limits: ServiceLimits) -> dict[str, Any]:
    """The OpenAPI 3.1 description.

    Args:
        analyses: dict of str -> `Analysis`. The analyses that the service offers.
        limits: `ServiceLimits`.

    Returns: dict of JSON values.
    """
    text = {**_STRING, "maxLength": limits.max_characters}
    pair = {"text_a": text, "text_b": text}
    mask = {
        "description": "words to mask, or positions of tokens",
        "oneOf": [text, {"type": "array", "items": {"oneOf": [text, {"type": "integer"}]}}],
    }
    masked = {**pair, "mask": mask}
    top_k = {"type": "integer", "minimum": 1, "maximum": limits.max_top_k, "default": 5}
    vector = {
        "pooling": {
            "enum": list(POOLINGS),
            "description": "default: that of a sentence model, else mean",
        },
        "layer": {"type": "integer", "default": -1, "description": "0 the embeddings, -1 the last layer"},
        "length": {"type": "integer", "minimum": 3, "description": "tokens to which a text is cut"},
    }
    words = {"oneOf": [text, {"type": "array", "items": text}], "description": "words of one token each"}
    paths = {
        "/predict": _post(
            "Predict masked words, the next sentence, replaced tokens",
            _one_or_many(masked, {"model": _MODEL, "top_k": top_k, "targets": words}, limits),
        ),
        "/features": _post("Sentence vectors", _one_or_many(pair, {"model": _MODEL, **vector}, limits)),
        "/tasks/{model}": {
            **_post("Predict with a fine-tuned model; keys as in its files", {"type": "object"}),
            "parameters": [{"name": "model", "in": "path", "required": True, "schema": _STRING}],
        },
        "/models": _get("The models that can be asked for"),
        "/health": _get("Whether the service runs"),
        "/metrics": _get("Counts and times in the format of Prometheus"),
        **{f"/explain/{name}": _post(_title(one), _analysis(one, masked, limits)) for name, one in analyses.items()},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "bert_tf", "version": bert_tf.__version__},
        "paths": paths,
    }


def overview_page(analyses: dict[str, Analysis], address: str) -> str:
    """An HTML page that lists the routes; it loads nothing from elsewhere.

    Args:
        analyses: dict of str -> `Analysis`. As in `specification`.
        address: str. Where the reader finds the service, with a slash at the end.

    Returns: str.
    """
    rows = "".join(
        f"<tr><td><code>POST explain/{html.escape(name)}</code></td><td>{html.escape(_title(one))}</td></tr>"
        for name, one in analyses.items()
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>bert_tf service</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
td {{ padding: .2rem 1rem .2rem 0; vertical-align: top; }}
</style></head><body>
<h1>bert_tf {bert_tf.__version__}</h1>
<p>The full description is <a href="openapi.json">openapi.json</a>. <a href="models">models</a> lists the models,
<a href="health">health</a> and <a href="metrics">metrics</a> are for monitoring.</p>
<pre>curl -X POST -d '{{"text_a": "The capital of France is [MASK]."}}' {html.escape(address)}predict</pre>
<table>
<tr><td><code>POST predict</code></td><td>Predict masked words, the next sentence, replaced tokens</td></tr>
<tr><td><code>POST features</code></td><td>Sentence vectors</td></tr>
<tr><td><code>POST tasks/{{model}}</code></td><td>Predict with a fine-tuned model</td></tr>
{rows}</table></body></html>
"""


def _title(analysis):
    return analysis.summary[0].upper() + analysis.summary[1:]


def _get(summary):
    return {"get": {"summary": summary, "responses": {"200": {"description": "the answer"}}}}


def _post(summary, schema):
    problem = {"application/json": {"schema": {"type": "object", "properties": {"error": _STRING}}}}
    statuses = {
        "400": "an input that cannot be used",
        "404": "no such model or analysis",
        "413": "too large",
        "503": "too many requests at once, or the service is ending",
    }
    return {
        "post": {
            "summary": summary,
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
            "responses": {
                "200": {"description": "the JSON record that the command line prints with --json"},
                **{status: {"description": text, "content": problem} for status, text in statuses.items()},
            },
        }
    }


def _one_or_many(fields, settings, limits):
    item = {"oneOf": [_STRING, _object(fields, ["text_a"])]}
    inputs = {"type": "array", "items": item, "minItems": 1, "maxItems": limits.max_inputs}
    return {"oneOf": [_object({**fields, **settings}, ["text_a"]), _object({"inputs": inputs, **settings}, ["inputs"])]}


def _analysis(analysis, masked, limits):
    row = {"oneOf": [_STRING, _object({**masked, "label": _STRING}, ["text_a"])]}
    needed = [option.name for option in analysis.options if option.required]
    described: dict[str, Any] = {
        "model": _MODEL,
        **masked,
        "rows": {"type": "array", "items": row, "maxItems": limits.max_inputs},
        "target": _object({key: {"type": _TYPES[kind]} for key, kind in TARGET_KEYS.items()}),
        "options": _object({option.name: _option(option, limits) for option in analysis.options}, needed),
    }
    fields = {key: described[key] for key in keys_of(analysis)}
    required = [key for key in ("text_a", "rows") if key in fields and analysis.inputs != "pair or file"]
    return _object(fields, required + (["options"] if needed else []))


def _object(properties, required=()):
    named = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **named}


def _option(option: Option, limits: ServiceLimits) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _TYPES[option.type]}
    if reads_texts(option):
        return {"type": "array", "items": _STRING, "description": option.help}
    most = limits.max_top_k if option.name == TOP_K.name else option.maximum
    bounds = {"minimum": option.minimum, "maximum": most}
    schema |= {key: value for key, value in bounds.items() if value is not None}
    schema |= {"enum": list(option.choices)} if option.choices is not None else {}
    if option.several:
        schema = {"type": "array", "items": schema}
    simple = option.default is not None and isinstance(option.default, (str, int, float, bool))
    return {**schema, "description": option.help, **({"default": option.default} if simple else {})}
