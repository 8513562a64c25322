"""Reading, checking and writing of WordPiece vocabularies: one token per line, in order of the ids."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import VocabularyError, json_kind

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
VOCABULARY_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
RUST_FILE = "tokenizer.json"
ADDED_FILE = "added_tokens.json"
SPECIAL_FILE = "special_tokens_map.json"
#: The keys of the special tokens in the settings of a tokenizer, in the order of `SPECIAL_TOKENS`.
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def read_vocabulary(path: str | Path, special_tokens: Sequence[str] = SPECIAL_TOKENS) -> tuple[str, ...]:
    """Read a ``vocab.txt``.

    LF and CRLF line ends, spaces after a token and a byte-order mark are accepted; they do not change any id. A blank
    line is a token without letters, as in Transformers.

    Args:
        path: str or path. The file.
        special_tokens: sequence of str. The tokens that the vocabulary must have.

    Returns:
        Tuple of str. The index of a token is its id.

    Raises:
        FileNotFoundError: the file does not exist.
        VocabularyError: the file is empty or not UTF-8, a line is repeated, or a special token is missing.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no vocabulary file {path}: give the path of a BERT vocab.txt.")
    tokens = _decode(path.read_bytes(), path).removeprefix("\ufeff").split("\n")
    # Only "\n" (or "\r\n") ends a line: str.splitlines would also cut at U+2028 and U+0085.
    if tokens[-1] == "":
        tokens.pop()
    return check_vocabulary(
        (line.rstrip(" \t\r") or line.removesuffix("\r") for line in tokens), str(path), special_tokens
    )


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VocabularyError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; save the vocabulary as UTF-8."
        ) from None


def check_vocabulary(
    tokens: Iterable[str], source: str = "the vocabulary", special_tokens: Sequence[str] = SPECIAL_TOKENS
) -> tuple[str, ...]:
    """Check the tokens of a vocabulary and return them as a tuple.

    Args:
        tokens: iterable of str. The tokens in order of their ids.
        source: str. The file name or another origin, for the error messages.
        special_tokens: sequence of str. The tokens that must be among them.

    Returns:
        Tuple of str. The tokens.

    Raises:
        VocabularyError: there are no tokens, a token is repeated or not text, or a special token is missing.
    """
    tokens = tuple(tokens)
    if _is_right(tokens, special_tokens):
        return tokens
    if not any(not isinstance(token, str) or token.strip() for token in tokens):
        raise VocabularyError(f"{source} is empty: a BERT vocabulary has one token per line.")
    first_line: dict[str, int] = {}
    for line, token in enumerate(tokens, start=1):
        if not isinstance(token, str):
            raise VocabularyError(f"{source}, line {line}: a token must be text, not {type(token).__name__}.")
        _check_token(token, line, source)
        if first_line.setdefault(token, line) != line:
            raise VocabularyError(
                f"{source}, line {line}: {token!r} is already on line {first_line[token]}; "
                "a token must have only one id."
            )
    missing = [token for token in special_tokens if token not in first_line]
    if missing:
        raise VocabularyError(
            f"{source} ({len(tokens)} lines) has no line {', '.join(missing)}: BERT needs one line for each of "
            f"{' '.join(special_tokens)}."
        )
    return tokens


def _is_right(tokens, special_tokens):
    """Whether `check_vocabulary` finds nothing wrong: its search for the wrong token takes five times as long."""
    try:
        text = "\n".join(tokens)
        text.encode()
    except (TypeError, UnicodeEncodeError):
        return False
    known = set(tokens)
    return (
        bool(text.strip())
        and "\r" not in text
        and text.count("\n") == len(tokens) - 1
        and len(known) == len(tokens)
        and known.issuperset(special_tokens)
    )


def _check_token(token: str, line: int, source: str) -> None:
    if "\n" in token or "\r" in token:
        raise VocabularyError(f"{source}, line {line}: {token!r} holds a line break; a token is one line.")
    if not token.isascii() and _SURROGATE.search(token):
        raise VocabularyError(f"{source}, line {line}: {token!r} is not text: it holds half a surrogate pair.")


def guess_lower_case(vocabulary: Iterable[str]) -> bool:
    """Return whether a vocabulary is uncased: only cased vocabularies hold words with capital letters."""
    return not any(token.lower() != token for token in vocabulary if not token.startswith("["))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Raises:
        VocabularyError: the file is not JSON or does not hold an object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} is not JSON ({error}); download the file again.") from None
    if not isinstance(value, dict):
        raise VocabularyError(f"{path} must hold a JSON object, not a JSON {json_kind(value)}.")
    return value


def write_folder(folder: str | Path, vocabulary: Sequence[str], options: dict[str, Any]) -> None:
    """Write ``vocab.txt`` and ``tokenizer_config.json`` into a folder; a missing folder is created.

    A ``tokenizer.json`` of an earlier save is removed, as it would count more.
    """
    from bert_tf.files import write_json, write_text

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / VOCABULARY_FILE, "\n".join(vocabulary) + "\n")
    write_json(folder / CONFIG_FILE, options)
    (folder / RUST_FILE).unlink(missing_ok=True)
