"""The checks of what a Python user gives to a public function: a `Trace` where it wants one, and so on.

A function says in the annotations of its arguments what it takes; the public names of `bert_tf` and `bert_tf.explain`
are looked up through `checked`, so this is said once for all of them. Calls inside the library are not checked. Only
what is certainly wrong is refused: a text, a number or another object of this library, but no object that may behave
like the right one. Messages that name options of the command line name the arguments here.
"""

import inspect
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache, wraps
from typing import Any, Callable

from bert_tf.errors import InputError

#: Class -> how to get an object of it.
_SOURCES = {
    "Ablation": "Ablation(heads=[(0, 1)]) is one",
    "BaseTokenizer": "bert.tokenizer is one",
    "Bert": "bert_tf.load(NAME) returns one",
    "BertConfig": "bert.config is one",
    "ParsedSentence": "read_conllu(lines) returns them",
    "Receiver": "Receiver('queries', 3, 11) is one",
    "RowResult": "score_rows(bert, rows) returns them",
    "Target": "mask_target(bert, trace) returns one",
    "TextRow": "read_rows(data).rows holds them",
    "Trace": "bert.trace(TEXT) returns one",
    "Variant": "without_word(bert, trace, trace.words()[0]) returns one",
    "WordSpan": "trace.words() returns them",
}
_NO_NUMBERS = (str, bytes, list, tuple, dict, set, type(None))
#: Annotation -> what it says, and the classes of certainly wrong values.
_PLAIN = {
    "int": ("a whole number", (*_NO_NUMBERS, float)),
    "int | None": ("a whole number", (*_NO_NUMBERS, float)),
    "float": ("a number", _NO_NUMBERS),
    "tuple[int, int]": ("two whole numbers, such as (0, 0)", (str, bytes, int, float, type(None))),
    "str | Sequence[str]": ("a string or a list of strings", (bytes, int, float, type(None))),
}
#: Annotation of the elements of a collection -> what it says, and the classes of certainly wrong elements.
_ELEMENTS = {
    "int": ("whole numbers", (*_NO_NUMBERS, float, bool)),
    "str": ("strings", (bytes, int, float, type(None))),
    "str | tuple[str, str | None]": ("strings or pairs of strings", (bytes, int, float, type(None))),
}
_COLLECTION = re.compile(r"(?:Iterable|Sequence|Collection)\[(.*)\]")


def checked(value: Any, package: str) -> Any:
    """A public function as one that checks its arguments before each call; every other public value as it is.

    Args:
        value: function, class or constant.
        package: str. The package in which the function has its public name: it can be pickled under that.

    Returns:
        `value`, or a function that raises InputError for an argument that is certainly wrong.
    """
    return _checked_function(value, package) if inspect.isfunction(value) else value


@cache
def _checked_function(function: Callable, package: str) -> Callable:
    signature = inspect.signature(function)
    kinds = {name: one.annotation for name, one in signature.parameters.items() if _is_checked(one.annotation)}
    if not kinds:
        return function

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError:
            return function(*args, **options)  # it says itself which argument is missing or unknown
        for name, kind in kinds.items():
            if name in given:
                _check(name, given[name], kind)
        for name, kind in kinds.items():
            if "bert" in given and kind.startswith("Trace") and given.get(name) is not None:
                _check_sizes(given["bert"], given[name])
        try:
            return function(*args, **options)
        except InputError as error:
            error.args = (_in_python_words(str(error), signature.parameters),)
            raise

    call.__module__ = package
    return call


def _in_python_words(sentence: str, names: Collection[str]) -> str:
    """A message with the names of arguments in the place of options, such as `other` for "--other M"."""

    def name(match: re.Match) -> str:
        argument = match[1].replace("-", "_")
        return f"`{argument}`" if argument in names else match[0]

    return re.sub(r"--([a-z-]+)( [A-Z]+\b)?", name, sentence)


def _is_checked(kind: Any) -> bool:
    """Whether an annotation says something that can be checked."""
    return isinstance(kind, str) and (kind in _PLAIN or kind.split(" | ")[0] in _SOURCES or _element(kind) is not None)


def _element(kind: str) -> str | None:
    """The annotation of the elements of a collection; None if the annotation is not that of a collection alone."""
    match = _COLLECTION.fullmatch(kind.removesuffix(" | None"))
    return match and match[1]


def _check(name: str, value: Any, kind: str) -> None:
    """Raise InputError if a value is certainly not what an annotation says."""
    if value is None and kind.endswith(" | None"):
        return
    if kind in _PLAIN:
        said, wrong = _PLAIN[kind]
        is_list = isinstance(value, (list, tuple)) and "Sequence" not in kind
        if isinstance(value, wrong) or (is_list and not _is_pair_of_numbers(value)):
            raise InputError(f"{name} must be {said}, not {_described(value)}.")
        if name == "seed" and value < 0:
            raise InputError(f"seed must be at least 0, not {value}.")
        return
    element = _element(kind)
    if element is not None:
        _check_collection(name, value, element)
        return
    wanted, *others = kind.split(" | ")
    if isinstance(value, str) and "str" in others:
        return
    if f"Iterable[{wanted}]" in others and isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        _check_collection(name, value, wanted)
    elif _is_other(value, wanted):
        source = f"give bert.trace({value!r:.60})" if (wanted, type(value)) == ("Trace", str) else _SOURCES[wanted]
        article = "an" if wanted == "Ablation" else "a"
        raise InputError(f"{name} must be {article} {wanted}, not {_described(value)}: {source}.")


def _check_collection(name: str, value: Any, element: str) -> None:
    """Raise InputError if a value is certainly not a collection of such elements. An iterator is not consumed."""
    if isinstance(value, str) and element.startswith("str"):
        return  # functions of texts say it themselves, with the word for what they read: see `refuse_one_alone`
    is_alone = isinstance(value, (str, bytes)) or not isinstance(value, Iterable)
    if element in _SOURCES:
        bad = [value] if is_alone else [item for item in _items(value) if _is_other(item, element)]
        if bad:
            is_one = not _is_other(bad[0], element) and type(bad[0]).__name__ == element
            source = "put it in a list" if is_one else _SOURCES[element]
            raise InputError(f"{name} must be a list of `{element}` objects, not {_described(bad[0])}: {source}.")
    elif is_alone:
        raise InputError(f"{name} must be a list, such as [{value!r:.60}], not {_described(value)} alone.")
    elif element in _ELEMENTS:
        said, wrong = _ELEMENTS[element]
        for item in _items(value):
            if isinstance(item, wrong) or _is_no_pair(item, element):
                raise InputError(f"{name} must be a list of {said}; {item!r:.60} is none.")
    elif element.startswith(("tuple[", "Sequence[", "Iterable[")):
        for item in _items(value):
            if _is_no_pair(item, element):
                raise InputError(f"{name} must be a list of pairs; {item!r:.60} is none.")
            if element == "tuple[str, str]" and not all(isinstance(part, str) for part in item):
                raise InputError(f"{name} must be a list of pairs of strings; {item!r:.60} is none.")
            if isinstance(item, str) or not isinstance(item, Iterable):
                raise InputError(
                    f"{name} must be a list of lists or tuples, such as [{value!r:.60}]; {item!r:.60} is none."
                )


def _is_no_pair(item: Any, element: str) -> bool:
    """Whether an element is a list or tuple of another length than the pairs that its annotation names."""
    return "tuple[" in element and isinstance(item, (list, tuple)) and len(item) != 2


def _is_pair_of_numbers(value: Sequence[Any]) -> bool:
    return len(value) == 2 and not any(isinstance(item, _ELEMENTS["int"][1]) for item in value)


def _items(value: Any) -> Any:
    """The elements of a list or tuple; of nothing else, as an iterator can be read only once."""
    return value if isinstance(value, (list, tuple)) else ()


def _is_other(value: Any, wanted: str) -> bool:
    """Whether a value is certainly no object of a class: of Python, of NumPy or of another class named above."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    is_ours = package == "bert_tf" and kind.__name__ in _SOURCES
    return package in ("builtins", "numpy", "pathlib") or (is_ours and kind.__name__ != wanted)


def _described(value: Any) -> str:
    """A value in a message: None, or its class and how it is written."""
    return "None" if value is None else f"the {type(value).__name__} {value!r:.60}"


def _check_sizes(bert: Any, trace: Any) -> None:
    """Raise InputError if the sizes of a trace's arrays are not those of the model; nothing is read or copied."""
    config = getattr(bert, "config", None)
    for values, axis, size, what in (
        ("hidden_states", 0, "num_hidden_layers", "layers"),
        ("attentions", 0, "num_hidden_layers", "layers"),
        ("hidden_states", -1, "hidden_size", "numbers in a hidden state"),
        ("logits", -1, "vocab_size", "tokens in the vocabulary"),
    ):
        shape, wanted = getattr(getattr(trace, values, None), "shape", None), getattr(config, size, None)
        if shape is None or wanted is None:
            continue
        actual = shape[axis] - (values == "hidden_states" and axis == 0)  # the embeddings are no layer
        if actual != wanted:
            raise InputError(
                f"The trace is of {trace.model}, with {actual} {what}, and {bert.name} has {wanted}: trace the text "
                "with the model that you give."
            )
