"""Reading, checking and writing WordPiece vocabularies: one token a line, in order of the ids."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from bert_tf.errors import VocabularyError

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
VOCABULARY_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
RUST_FILE = "tokenizer.json"


def read_vocabulary(path: str | Path) -> tuple[str, ...]:
    """Read a ``vocab.txt``.

    LF and CRLF line ends and a byte-order mark are accepted: they do not move any id.

    Args:
        path: the file.

    Returns:
        The tokens; a token's place is its id.

    Raises:
        FileNotFoundError: there is no such file.
        VocabularyError: not UTF-8, empty, a blank or repeated line, or a special token is missing.
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
        tokens: the tokens in order of their ids.
        source: file name or other origin, for the error messages.

    Raises:
        VocabularyError: empty, not text, a blank or repeated token, or a special token is missing.
    """
    tokens = tuple(tokens)
    if not tokens:
        raise VocabularyError(f"{source} is empty: a BERT vocabulary has one token a line.")
    first_line: dict[str, int] = {}
    for line, token in enumerate(tokens, start=1):
        if not isinstance(token, str):
            raise VocabularyError(f"{source}, line {line}: a token must be text, not {type(token).__name__}.")
        _check_token(token, line, source)
        if first_line.setdefault(token, line) != line:
            raise VocabularyError(
                f"{source}, line {line}: {token!r} is already on line {first_line[token]}; "
                "a token must have one id only."
            )
    missing = [token for token in SPECIAL_TOKENS if token not in first_line]
    if missing:
        raise VocabularyError(
            f"{source} ({len(tokens)} lines) has no line {', '.join(missing)}: BERT needs each of "
            f"{' '.join(SPECIAL_TOKENS)} on a line of its own."
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
        raise VocabularyError(f"{source}, line {line}: {token!r} holds half a surrogate pair: not text.")


def guess_lower_case(vocabulary: Sequence[str]) -> bool:
    """Tell an uncased vocabulary from a cased one: only cased ones hold words with capital letters."""
    return not any(token.lower() != token for token in vocabulary if not token.startswith("["))


def read_folder(folder: str | Path) -> tuple[tuple[str, ...], dict]:
    """Read the vocabulary and the tokenizer options of a model folder.

    ``vocab.txt`` is preferred; without it the vocabulary inside a WordPiece ``tokenizer.json`` is taken (what
    Transformers 5 saves).

    Returns:
        The tokens, and the options found: ``do_lower_case``, ``strip_accents``, ``tokenize_chinese_chars``.

    Raises:
        FileNotFoundError: the folder holds neither file.
        VocabularyError: a file that cannot be used.
    """
    folder = Path(folder)
    options: dict = {}
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


def read_json(path: Path) -> dict:
    """The object in a JSON file; VocabularyError where it holds none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise VocabularyError(f"{path} is not JSON ({error}); fetch the file again.") from None
    if not isinstance(value, dict):
        raise VocabularyError(f"{path} must hold a JSON object, not {type(value).__name__}.")
    return value


def _read_tokenizer_json(path: Path) -> tuple[tuple[str, ...], dict]:
    data = read_json(path)
    model = data.get("model")
    is_wordpiece = isinstance(model, dict) and model.get("type") == "WordPiece"
    if not is_wordpiece or not isinstance(model.get("vocab"), dict):
        raise VocabularyError(f"{path} is not a WordPiece tokenizer: a BERT model is needed.")
    ids = model["vocab"]
    tokens = sorted(ids, key=ids.get)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise VocabularyError(f"{path}: the ids of its vocabulary do not run from 0 to {len(tokens) - 1}.")
    normalizer = data.get("normalizer") or {}
    names = {
        "lowercase": "do_lower_case",
        "strip_accents": "strip_accents",
        "handle_chinese_chars": "tokenize_chinese_chars",
    }
    options = {ours: normalizer[name] for name, ours in names.items() if normalizer.get(name) is not None}
    return check_vocabulary(tokens, source=str(path)), options


def write_folder(folder: str | Path, vocabulary: Sequence[str], options: dict) -> None:
    """Write ``vocab.txt`` and ``tokenizer_config.json`` into a folder, which is made if need be."""
    from bert_tf.files import write_json, write_text

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / VOCABULARY_FILE, "\n".join(vocabulary) + "\n")
    write_json(folder / CONFIG_FILE, options)
