"""Errors a user of the text package can meet; each message is one sentence that can be shown as it is."""


class TextError(ValueError):
    """A text that cannot be tokenized, or lengths that cannot be packed."""


class VocabularyError(ValueError):
    """A vocabulary that cannot be used; the message names the file and the line."""
