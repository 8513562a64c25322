"""What a user can get wrong, each error one clear sentence: inputs, texts, vocabularies, model folders, tasks."""


class InputError(ValueError):
    """An input that no prediction can be made from; the message says what to change."""


class EmptyText(InputError):
    """A text without a single token."""


class NothingToPredict(InputError):
    """Neither a masked token nor a second sentence: there is no question to answer."""


class MaskPositionError(InputError):
    """A position to mask that is outside the sequence, or is one of the model's own special tokens."""


class WordNotFound(InputError):
    """A word to mask that the texts do not contain."""


class MaskTruncated(InputError):
    """A mask in the part of a text that was cut off because the model reads only so many tokens."""


class NotComparable(InputError):
    """Two traces that were not made from the same texts."""


class Cancelled(Exception):
    """A sweep that its progress callback stopped by returning False."""


def report(progress, done, total):
    """Tell a progress callback how far things are, if there is one.

    Args:
        progress: callable(done, total), or None. done, total: numbers of whatever is counted.
    Raises:
        Cancelled: it returned False (None, what a callback without an answer returns, goes on).
    """
    if progress is not None and progress(done, total) is False:
        raise Cancelled(f"Stopped after {done} of {total}.")


def checked_text(text, name):
    """Return `text` if it is a string with something in it.

    Raises:
        InputError: not a `str`.
        EmptyText: empty, or nothing but white space.
    """
    if not isinstance(text, str):
        raise InputError(f"{name} must be a string, not {type(text).__name__} ({text!r:.60}).")
    if not text.strip():
        raise EmptyText(f"{name} is empty: give it at least one word.")
    return text


def checked_pair(text_a, text_b):
    """Return (text_a, text_b) checked; a `text_b` that is None or blank becomes None, which means no pair."""
    text_a = checked_text(text_a, "text_a")
    if text_b is None or (isinstance(text_b, str) and not text_b.strip()):
        return text_a, None
    return text_a, checked_text(text_b, "text_b")


class TextError(ValueError):
    """A text that cannot be tokenized, or lengths that cannot be packed."""


class VocabularyError(ValueError):
    """A vocabulary that cannot be used; the message names the file and the line."""


def check_text(text: object, where: str = "The text") -> None:
    """Refuse what is not text.

    Args:
        text: what was given.
        where: how to call it in the message.

    Raises:
        TextError: not a str, or it holds half a surrogate pair.
    """
    if not isinstance(text, str):
        kind = type(text).__name__
        raise TextError(f"{where} must be a str, not {kind}: decode bytes, and convert other values.")
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise TextError(
            f"{where} is broken at character {error.start}: U+{code:04X} is half a surrogate pair; "
            "read the text again with its true encoding."
        ) from None


class CheckpointError(ValueError):
    """A model folder that cannot be read or written: the message names the file, the tensor, what to do."""


class UnknownModel(CheckpointError):
    """A model name that is neither installed nor released, or a released one that is not on this machine."""


class DownloadError(OSError):
    """A download that did not come to its end: the message says why, and whether it can be resumed."""


_HEAD_NAMES = {
    "pooler": "pooler",
    "mlm": "masked language model head",
    "nsp": "next-sentence head",
    "sop": "sentence-order head",
    "replaced": "replaced-token head",
}
_HEAD_USES = {
    "pooler": "give a pooled output",
    "mlm": "predict masked words",
    "nsp": "score whether one sentence follows another",
    "sop": "score whether two texts are in order",
    "replaced": "score which tokens were replaced",
}


class MissingHead(CheckpointError):
    """A prediction was asked of a model whose checkpoint has no weights for it.

    Args:
        head: one of `names.HEADS`.
        model: the model's name, for the message.
    """

    def __init__(self, head, model="this model"):
        self.head, self.model = head, str(model)
        super().__init__(
            f"{self.model} has no {_HEAD_NAMES[head]} in its checkpoint, so it cannot "
            f"{_HEAD_USES[head]}; choose a model that has one, or train one with "
            "`python -m bert_tf pretrain`."
        )


def require_head(heads, head, model="this model"):
    """Raises MissingHead unless `head` is among `heads` (the `bert_heads` of a model)."""
    if head not in heads:
        raise MissingHead(head, model)


class RuntimeInputError(ValueError):
    """A batch, precision, engine or output that the runtime cannot take; the message says what to change."""


class TaskError(ValueError):
    """Settings of a task, or a request to a task model, that cannot be."""


class DataError(ValueError):
    """A file of examples that cannot be used; the message names the file and, where there is one, the line."""


class RowError(DataError):
    """A row that lacks a field or a text."""
