"""Reading, checking and writing of WordPiece vocabularies: one token per line, in order of the ids."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import VocabularyError

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
VOCABULARY_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
RUST_FILE = "tokenizer.json"


def read_vocabulary(path: str | Path) -> tuple[str, ...]:
    """Read a ``vocab.txt``.

    LF and CRLF line ends and a byte-order mark are accepted; they do not change any id.

    Args:
        path: str or path. The file.

    Returns:
        Tuple of str. The index of a token is its id.

    Raises:
        FileNotFoundError: the file does not exist.
        VocabularyError: the file is empty or not UTF-8, a line is blank or repeated, or a special token is missing.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no vocabulary file {path}: give the path of a BERT vocab.txt.")
    tokens = _decode(path.read_bytes(), path).removeprefix("\ufeff").split("\n")
    # Only "\n" (or "\r\n") ends a line: str.splitlines would also cut at U+2028 and U+0085.
    if tokens[-1] == "":
        tokens.pop()
    return check_vocabulary((token.removesuffix("\r") for token in tokens), source=str(path))


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise VocabularyError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; save the vocabulary as UTF-8."
        ) from None


def check_vocabulary(tokens: Iterable[str], source: str = "the vocabulary") -> tuple[str, ...]:
    """Check the tokens of a vocabulary and return them as a tuple.

    Args:
        tokens: iterable of str. The tokens in order of their ids.
        source: str. The file name or another origin, for the error messages.

    Returns:
        Tuple of str. The tokens.

    Raises:
        VocabularyError: there are no tokens, a token is blank, repeated or not text, or a special token is missing.
    """
    tokens = tuple(tokens)
    if not tokens:
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
    missing = [token for token in SPECIAL_TOKENS if token not in first_line]
    if missing:
        raise VocabularyError(
            f"{source} ({len(tokens)} lines) has no line {', '.join(missing)}: BERT needs one line for each of "
            f"{' '.join(SPECIAL_TOKENS)}."
        )
    return tokens


def _check_token(token: str, line: int, source: str) -> None:
    if token.strip(" \t") == "":
        raise VocabularyError(
            f"{source}, line {line}: the line is blank; every line number is a token's id, "
            "so put the token back or end the file before this line."
        )
    if "\n" in token or "\r" in token:
        raise VocabularyError(f"{source}, line {line}: {token!r} holds a line break; a token is one line.")
    if any("\ud800" <= character <= "\udfff" for character in token):
        raise VocabularyError(f"{source}, line {line}: {token!r} is not text: it holds half a surrogate pair.")


def guess_lower_case(vocabulary: Sequence[str]) -> bool:
    """Return whether a vocabulary is uncased: only cased vocabularies hold words with capital letters."""
    return not any(token.lower() != token for token in vocabulary if not token.startswith("["))


def read_folder(folder: str | Path) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Read the vocabulary and the tokenizer options of a model folder.

    ``vocab.txt`` is preferred. Without it, the vocabulary is read from a WordPiece ``tokenizer.json``, which
    Transformers 5 saves.

    Args:
        folder: str or path. The model folder.

    Returns:
        The tokens, and the options that the files name: ``do_lower_case``, ``strip_accents``,
        ``tokenize_chinese_chars``.

    Raises:
        FileNotFoundError: the folder holds neither file.
        VocabularyError: a file cannot be used.
    """
    folder = Path(folder)
    options: dict[str, Any] = {}
    if (folder / VOCABULARY_FILE).is_file():
        tokens = read_vocabulary(folder / VOCABULARY_FILE)
    elif (folder / RUST_FILE).is_file():
        tokens, options = _read_tokenizer_json(folder / RUST_FILE)
    else:
        raise FileNotFoundError(
            f"{folder} holds neither {VOCABULARY_FILE} nor {RUST_FILE}: choose the folder of a BERT model."
        )
    if (folder / CONFIG_FILE).is_file():
        config = read_json(folder / CONFIG_FILE)
        for key in ("do_lower_case", "strip_accents", "tokenize_chinese_chars"):
            if config.get(key) is not None:
                options[key] = config[key]
    for key, value in options.items():
        if not isinstance(value, bool):
            raise VocabularyError(f"{folder}: {key} is {value!r} in its tokenizer files, but must be true or false.")
    return tokens, options


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object.

    Raises:
        VocabularyError: the file is not JSON or does not hold an object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise VocabularyError(f"{path} is not JSON ({error}); download the file again.") from None
    if not isinstance(value, dict):
        raise VocabularyError(f"{path} must hold a JSON object, not {type(value).__name__}.")
    return value


def _read_tokenizer_json(path: Path) -> tuple[tuple[str, ...], dict[str, Any]]:
    data = read_json(path)
    model = data.get("model")
    if not isinstance(model, dict) or model.get("type") != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise VocabularyError(f"{path} is not a WordPiece tokenizer: a BERT model is needed.")
    ids = model["vocab"]
    tokens = sorted(ids, key=ids.get)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise VocabularyError(f"{path}: the ids of its vocabulary do not run from 0 to {len(tokens) - 1}.")
    normalizer = data.get("normalizer") or {}
    option_names = {
        "lowercase": "do_lower_case",
        "strip_accents": "strip_accents",
        "handle_chinese_chars": "tokenize_chinese_chars",
    }
    options = {option: normalizer[name] for name, option in option_names.items() if normalizer.get(name) is not None}
    return check_vocabulary(tokens, source=str(path)), options


def write_folder(folder: str | Path, vocabulary: Sequence[str], options: dict[str, Any]) -> None:
    """Write ``vocab.txt`` and ``tokenizer_config.json`` into a folder; a missing folder is created."""
    from bert_tf.files import write_json, write_text

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / VOCABULARY_FILE, "\n".join(vocabulary) + "\n")
    write_json(folder / CONFIG_FILE, options)
