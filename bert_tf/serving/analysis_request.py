"""A JSON request for an analysis of the catalogue: checked, run, and answered as `explain --json` does."""

from __future__ import annotations

import contextlib
import functools
import re
from argparse import ArgumentTypeError, Namespace
from typing import Any

from bert_tf.analyses import catalogue, check_model
from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.checkpoints.stored_model import when_engine_unused
from bert_tf.cli.explain import analysis as command
from bert_tf.errors import InputError
from bert_tf.explain.datasets.text_rows import TextRow
from bert_tf.serving.limits import ServiceLimits
from bert_tf.serving.model_store import ModelStore
from bert_tf.serving.problems import RequestProblem
from bert_tf.startup import leave_cores_to

#: The answer to explain: key of "target" -> type of its value.
TARGET_KEYS = {
    "token": str,
    "position": int,
    "replaced": bool,
    "next_sentence": bool,
    "sentence_order": bool,
    "opposite": bool,
    "label": str,
}
_PAIR = ("text_a", "text_b")
_ROW_KEYS = (*_PAIR, "mask", "label")
_JSON_TYPES: dict[type, tuple[type, ...]] = {float: (int, float), int: (int,), str: (str,), bool: (bool,)}


def served_analyses() -> dict[str, Analysis]:
    """The analyses of the catalogue by name, without those that read a folder or are about no model."""
    return {name: analysis for name, analysis in catalogue().items() if analysis.model}


def answer(name: str, body: dict[str, Any], store: ModelStore, limits: ServiceLimits) -> dict[str, Any]:
    """Run an analysis.

    Args:
        name: str. The name of the analysis.
        body: dict. The JSON request: "model", "text_a", "text_b", "mask", "rows", "target", "options".
        store: `ModelStore`. limits: `ServiceLimits`.

    Returns: dict, the record that `explain NAME --json` prints.

    Raises:
        RequestProblem: there is no such analysis or model, or a key or an option is unknown.
        InputError: a value cannot be used.
        MissingHead: the model lacks a head that the analysis needs.
    """
    analysis = served_analyses().get(name)
    if analysis is None:
        raise RequestProblem(404, f"There is no analysis {name[:80]!r} here; GET /openapi.json lists them.")
    unread = sorted(key for key, value in body.items() if value is not None and key not in keys_of(analysis))
    if unread:
        raise RequestProblem(
            400, f"{name} does not read {', '.join(unread)[:80]}; it reads {', '.join(keys_of(analysis))}."
        )
    try:
        return _answer(analysis, body, store, limits)
    except InputError as error:
        raise InputError(_with_keys(str(error), analysis)) from error


def _answer(analysis, body, store, limits):
    values = body.get("options")
    options = options_of(analysis, {} if values is None else values, store, limits)
    namespace = _namespace(analysis, body, limits)
    command.check(analysis, namespace, options)
    if namespace.texts is not None and analysis.check_rows is not None:
        analysis.check_rows(options, namespace.texts)
    # What the store drops in the meantime is taken back only while somebody holds what it returned.
    served = [store.get(body.get("model"))]
    bert = served[0].bert
    check_model(analysis, bert)
    texts = _texts(analysis, namespace, options)
    _check_tokens(bert, texts, limits)
    for option in analysis.options:
        names = option.models(options[option.name], bert)
        if names is not None:
            several = not isinstance(names, str)
            others = [store.get(name) for name in (names if several else [names])]
            served += others
            for other in others:
                _check_tokens(other.bert, texts, limits)
            options[option.name] = tuple(other.bert for other in others) if several else others[0].bert
    with when_engine_unused(functools.partial(_beside_predictions, bert)):
        positional, trace = command.inputs(analysis, bert, namespace)
        return command.record_of(analysis, bert, trace, analysis.function(*positional, **options))


def _texts(analysis, namespace, options):
    """The texts and pairs of a request, each a tuple (text A, text B or None)."""
    texts = [] if namespace.text_a is None else [(namespace.text_a, namespace.text_b)]
    texts += [(row.text_a, row.text_b) for row in namespace.texts or ()]
    for option in analysis.options:
        if option.metavar in ("TEXT", "SENTENCE", "FILE") and options[option.name]:
            values = options[option.name]
            texts += [(text, None) for text in ([values] if isinstance(values, str) else values)]
    return texts


def _check_tokens(bert, texts, limits):
    if bert.max_length <= limits.max_tokens:
        return
    for text_a, text_b in texts:
        count = len(bert.tokenizer.encode(text_a, text_b, bert.max_length).token_ids)
        if count > limits.max_tokens:
            raise RequestProblem(
                413, f"A text has {count:,} tokens, but an analysis reads at most {limits.max_tokens:,}."
            )


def _with_keys(sentence, analysis):
    """A sentence about options of the command line, with the keys of a request instead of them."""
    keys = {flag: option.name for option in analysis.options for flag in option.flags}
    if analysis.target:
        keys |= {f"--{key.replace('_', '-')}": key for key in TARGET_KEYS} | {"--target": "token"}

    def key(match):
        return f'"{keys[match[1]]}"' if match[1] in keys else match[0]

    return re.sub(r"(--[a-z-]+)( [A-Z]+\b)?", key, sentence)  # with the placeholder of the value, as in --other M


@contextlib.contextmanager
def _beside_predictions(bert):
    """TensorFlow works in this block; if OpenVINO answers the predictions, it takes what they leave of the cores."""
    leave_cores_to(bert.runtime.engine)
    yield


def options_of(analysis: Analysis, values: Any, store: ModelStore, limits: ServiceLimits) -> dict[str, Any]:
    """The options of an analysis from their JSON values; the others have their defaults.

    Raises: RequestProblem or InputError if an option is unknown, missing, too large or has another type.
    """
    known = {option.name: option for option in analysis.options}
    if not isinstance(values, dict) or values.keys() - known.keys():
        names = ", ".join(known) or "none"
        raise RequestProblem(400, f'"options" must be an object with options of {analysis.name}: {names}.')
    missing = [option.name for option in known.values() if option.required and values.get(option.name) is None]
    if missing:
        raise RequestProblem(400, f"{analysis.name} needs the options {', '.join(missing)}.")
    return {
        name: _default(option) if values.get(name) is None else _value(option, values[name], store, limits)
        for name, option in known.items()
    }


def _default(option):
    """The default of an option; argparse parses a text, too."""
    return option.parse(option.default) if option.parse and isinstance(option.default, str) else option.default


def keys_of(analysis: Analysis) -> tuple[str, ...]:
    """The keys that a request for an analysis may have."""
    reads_pair = "pair" in analysis.inputs or analysis.inputs == "texts"
    texts = _PAIR if reads_pair else _PAIR[:1] if analysis.inputs == "text" else ()
    return (
        "model",
        *texts,
        *(("mask",) if reads_pair and analysis.masks else ()),
        *(("rows",) if "file" in analysis.inputs else ()),
        *(("target",) if analysis.target else ()),
        "options",
    )


def reads_texts(option: Option) -> bool:
    """Whether the command line reads the value from a file; a request has its lines as a list."""
    return option.metavar == "FILE"


def _value(option, value, store, limits):
    if isinstance(value, list) and len(value) > limits.max_inputs:
        raise RequestProblem(
            413, f"{option.name} has {len(value)} values, but at most {limits.max_inputs} are read together."
        )
    check_lengths(value, option.name, limits)
    if reads_texts(option):
        if not _is_list(value, str):
            raise InputError(f"{option.name} must be a list of texts.")
        return tuple(value)
    if option.several:
        if not isinstance(value, list):
            raise InputError(f"{option.name} must be a list.")
        return tuple(_one(option, item, store) for item in value)
    if option.name == TOP_K.name and isinstance(value, int) and value > limits.max_top_k:
        raise InputError(f"{option.name} must be at most {limits.max_top_k}, not {value}.")
    return _one(option, value, store)


def _one(option, value, store):
    read_from_text = option.parse is not None and isinstance(value, str)
    is_wrong_bool = isinstance(value, bool) and option.type is not bool
    if not read_from_text and (is_wrong_bool or not isinstance(value, _JSON_TYPES[option.type])):
        raise InputError(f"{option.name} must be of type {option.type.__name__}, not {str(value)[:80]}.")
    if read_from_text or (option.parse is not None and option.type is int):
        try:
            value = option.parse(str(value))  # it knows the bounds
        except (ValueError, ArgumentTypeError) as error:
            raise InputError(f"{option.name}: {error}") from None
    elif option.metavar == "M" and option.choices is None:
        return store.name_of(value)  # never a path
    else:
        value = option.value_aliases.get(value, value)
    if option.choices is not None and value not in option.choices:
        raise InputError(f"{option.name} must be one of {', '.join(map(str, option.choices))}, not {str(value)[:80]}.")
    return value


def _namespace(analysis, body, limits):
    """The inputs as the command line has them after parsing."""
    target = {} if body.get("target") is None else body["target"]
    if not isinstance(target, dict) or not all(
        key in TARGET_KEYS and type(value) is TARGET_KEYS[key] for key, value in target.items()
    ):
        keys = ", ".join(f"{key} ({kind.__name__})" for key, kind in TARGET_KEYS.items())
        raise RequestProblem(400, f'"target" must be an object with some of {keys}.')
    texts = text_rows(body.get("rows"), limits)
    mask = _mask(body, '"mask"', limits)
    if analysis.inputs in ("pair", "pair with file", "text", "texts") and body.get("text_a") is None:
        raise InputError(f'{analysis.name} needs a text: give "text_a".')
    if analysis.inputs == "file" and texts is None:
        raise InputError(f'{analysis.name} needs "rows", a list of texts.')
    if analysis.inputs == "pair or file" and (texts is None) == (body.get("text_a") is None):
        raise InputError('Give either "text_a" or "rows".')
    beside = [key for key in ("text_b", "mask") if body.get(key)]
    if analysis.inputs == "pair or file" and texts is not None and beside:
        raise InputError(f'"{beside[0]}" goes with "text_a" and is not read beside "rows": leave it out.')
    return Namespace(
        text_a=checked_length(body.get("text_a"), "text_a", limits),
        text_b=checked_length(body.get("text_b"), "text_b", limits),
        mask=mask,
        texts=texts,
        target=target.get("token"),
        **{name: target.get(name, False) for name in ("replaced", "next_sentence", "sentence_order", "opposite")},
        position=target.get("position"),
        label=target.get("label"),
    )


def text_rows(rows: Any, limits: ServiceLimits) -> tuple[TextRow, ...] | None:
    """The rows of a request, texts or objects with "text_a", "text_b", "mask", "label"; None if it has none."""
    if rows is None:
        return None
    if not isinstance(rows, list) or not rows:
        raise InputError('"rows" must be a list of texts, or of objects with "text_a".')
    if len(rows) > limits.max_inputs:
        raise RequestProblem(413, f"There are {len(rows)} rows, but at most {limits.max_inputs} are read together.")
    read = []
    for number, row in enumerate(rows, 1):
        row = {"text_a": row} if isinstance(row, str) else row
        if not isinstance(row, dict) or not isinstance(row.get("text_a"), str):
            raise InputError(f'Row {number} must be a text, or an object with "text_a".')
        if unknown := row.keys() - set(_ROW_KEYS):
            raise InputError(
                f"Row {number} has unknown keys: {', '.join(sorted(unknown))[:80]}; known are {', '.join(_ROW_KEYS)}."
            )
        text_a, text_b = (checked_length(row.get(name), f"{name} of row {number}", limits) for name in _PAIR)
        label = checked_length(row.get("label"), f"label of row {number}", limits)
        mask = _mask(row, f"The mask of row {number}", limits)
        read.append(TextRow(number, text_a or "", text_b, tuple(mask), label))
    return tuple(read)


def _mask(item, name, limits):
    mask = [] if item.get("mask") is None else item["mask"]
    mask = [mask] if isinstance(mask, str) else mask
    if not _is_list(mask, str, int):
        raise InputError(f"{name} must be a word, or a list of words and positions.")
    check_lengths(mask, name, limits)
    return mask


def checked_length(text: Any, name: str, limits: ServiceLimits) -> str | None:
    """A text of a request, or None.

    Raises: InputError if it is not text; RequestProblem if it is too long.
    """
    if text is not None and not isinstance(text, str):
        raise InputError(f"{name} must be text, not {str(text)[:80]}.")
    if text is not None and len(text) > limits.max_characters:
        raise RequestProblem(
            413, f"{name} has {len(text):,} characters, but at most {limits.max_characters:,} are read."
        )
    return text


def check_lengths(value: Any, name: str, limits: ServiceLimits) -> None:
    """Check the lengths of the texts that a value is or has; what is no text is not looked at.

    Raises: RequestProblem if one is too long.
    """
    for text in value if isinstance(value, list) else (value,):
        if isinstance(text, str):
            checked_length(text, name, limits)


def _is_list(value, *kinds):
    return isinstance(value, list) and all(type(item) in kinds for item in value)
