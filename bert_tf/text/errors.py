"""Errors a user of the text package can meet (one sentence each, shown as it is), and the check of a text."""


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
