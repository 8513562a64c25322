"""What the byte-level and the SentencePiece tokenizer share: they are made from a ``tokenizer.json``.

Their pieces are shown as text: a piece that begins a word after a space begins with a space (" Paris"), any
other goes on what stands before it ("ing"). Shapes: T tokens.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import AddedToken
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.errors import VocabularyError, check_text
from bert_tf.tokenizers.base import BaseTokenizer, Tokens, extend_over_combining_marks
from bert_tf.tokenizers.vocabulary import CONFIG_FILE, RUST_FILE, read_json

_ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


class RustBackedTokenizer(BaseTokenizer):
    """A tokenizer whose every setting is in the JSON of the Rust library."""

    default_tokens: tuple[str, ...] = ()
    transformers_class = ""

    def __init__(self, settings: str, special_tokens: Sequence[str] | None = None):
        """Make a tokenizer.

        Args:
            settings: the content of a ``tokenizer.json``.
            special_tokens: padding, unknown, beginning, separator and mask, None for the architecture's own.

        Raises:
            VocabularyError: not such a file, or a special token is not in its vocabulary.
        """
        try:
            rust = RustTokenizer.from_str(settings)
        except Exception as error:  # the Rust library raises nothing narrower
            raise VocabularyError(f"This is no tokenizer of the library tokenizers: {error}.") from None
        special_tokens = tuple(special_tokens or self.default_tokens)
        missing = [token for token in special_tokens if rust.token_to_id(token) is None]
        if missing:
            raise VocabularyError(f"The vocabulary has no token {', '.join(missing)}, which the model needs.")
        rust.no_truncation()
        rust.no_padding()
        raw = [rust.id_to_token(index) for index in range(rust.get_vocab_size())]
        if None in raw:
            missing_id = raw.index(None)
            raise VocabularyError(f"The vocabulary of {len(raw)} tokens has none with the id {missing_id}.")
        specials = {token.content for token in rust.get_added_tokens_decoder().values()} | set(special_tokens)
        readable = _each_another(raw, [piece if piece in specials else self.show(piece) for piece in raw])
        # The piece of a space alone, too, begins a word.
        self._spellings = tuple(
            shown if piece in specials or self.show(piece).isspace() else spelled(shown)
            for piece, shown in zip(raw, readable, strict=True)
        )
        self._special_tokens = special_tokens
        self._drops_marks = '"StripAccents"' in settings
        self.lower_case = '"Lowercase"' in settings
        self._set_up(rust, readable, special_tokens)

    def show(self, piece: str) -> str:
        """A piece of the vocabulary as text; the subclass knows how."""
        return piece

    @property
    def spellings(self) -> tuple[str, ...]:
        return self._spellings

    def __reduce__(self):
        return type(self), (self._rust.to_str(), self._special_tokens)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vocab_size} tokens)"

    @classmethod
    def from_settings(cls, path: Path, special_tokens: Sequence[str] | None = None):
        """From a ``tokenizer.json``; errors name the file."""
        try:
            return cls(path.read_text(encoding="utf-8"), special_tokens)
        except (VocabularyError, UnicodeDecodeError) as error:
            raise VocabularyError(f"{path}: {error}") from None

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write ``tokenizer.json``, ``tokenizer_config.json`` and the vocabulary as Transformers names it."""
        from bert_tf.files import write_json, write_text

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / RUST_FILE, self._rust.to_str())
        roles = dict(zip(_ROLES, self.special_tokens, strict=True))
        options = {"tokenizer_class": self.transformers_class, "model_max_length": model_max_length, **roles}
        write_json(folder / CONFIG_FILE, options)

    def tokenize(self, text: str) -> Tokens:
        """Split a text into pieces.

        Args:
            text: any text.

        Returns:
            Ids, readable pieces, offsets (without the space before a word) and word ids; no special tokens.

        Raises:
            TextError: not a str, or half a surrogate pair in it.
        """
        check_text(text)
        encoding = self._rust.encode(text, add_special_tokens=False)
        offsets = [_trimmed(text, *offset) for offset in encoding.offsets]
        if offsets and self._drops_marks and not text.isascii():
            offsets = extend_over_combining_marks(text, offsets)
        return Tokens(
            ids=np.array(encoding.ids, dtype=np.int32),
            tokens=tuple(self.vocab[index] for index in encoding.ids),
            offsets=tuple(offsets),
            word_ids=tuple(self.words(text, offsets, encoding.word_ids)),
        )

    def words(self, text: str, offsets: Sequence[tuple[int, int]], found: Sequence[int]) -> Iterable[int]:
        """Word numbers of the pieces; `found` are the Rust library's."""
        return found


def spelled(shown: str) -> str:
    """A readable piece in BERT's spelling."""
    return shown[1:] if shown.startswith(" ") and len(shown) > 1 else f"##{shown}"


def _each_another(raw: Sequence[str], readable: Sequence[str]) -> list[str]:
    """The readable pieces, the raw one in the place of any that was there before or would not be seen."""
    seen, result = set(), []
    for piece, shown in zip(raw, readable, strict=True):
        chosen = shown if shown.strip() and shown not in seen else piece
        seen.add(chosen)
        result.append(chosen)
    return result


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the spaces at its ends; a span of spaces alone stays."""
    inner = text[start:end]
    stripped = inner.strip()
    if not stripped:
        return start, end
    begin = start + len(inner) - len(inner.lstrip())
    return begin, begin + len(stripped)


def special_tokens_of(folder: Path) -> tuple[str, ...] | None:
    """The special tokens a folder's ``tokenizer_config.json`` names, None where it does not name all five."""
    if not (folder / CONFIG_FILE).is_file():
        return None
    values = read_json(folder / CONFIG_FILE)
    found = [values.get(role) for role in _ROLES]
    found = [value.get("content") if isinstance(value, dict) else value for value in found]
    return tuple(found) if all(isinstance(value, str) for value in found) else None


def mark_special(rust: RustTokenizer, tokens: Sequence[str], mask: str) -> None:
    """Make tokens of the vocabulary special; the mask takes the space before it along, as released."""
    rust.add_special_tokens(
        [AddedToken(token, special=True, lstrip=token == mask, normalized=False) for token in tokens]
    )
