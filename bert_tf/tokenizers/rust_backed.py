"""The base class of the byte-level and the SentencePiece tokenizer, which are built from a ``tokenizer.json``.

Their pieces are shown as text. A piece that begins a word after a space begins with a space (" Paris"); any other
piece continues the piece before it ("ing"). Shapes: T tokens.
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from tokenizers import AddedToken
from tokenizers import Encoding as RustEncoding
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.errors import VocabularyError, check_text
from bert_tf.tokenizers.base import BaseTokenizer, Tokens, extend_over_combining_marks, load_pipeline
from bert_tf.tokenizers.vocabulary import CONFIG_FILE, ROLES, RUST_FILE, SPECIAL_FILE, read_json
from bert_tf.tokenizers.wordpiece_files import added_tokens, stated_tokens


class RustBackedTokenizer(BaseTokenizer):
    """A tokenizer whose settings are all in the JSON of the Rust library."""

    default_tokens: tuple[str, ...] = ()
    transformers_class = ""
    #: The class that `save` writes, if it is another one.
    saved_class: str | None = None

    def __init__(self, settings: str, special_tokens: Sequence[str] | None = None):
        """Make a tokenizer.

        Args:
            settings: str. The content of a ``tokenizer.json``.
            special_tokens: sequence of str or None. The padding, unknown, beginning, separator and mask token;
                None for `default_tokens` of the class.

        Raises:
            VocabularyError: `settings` is not a tokenizer, or a special token is not in its vocabulary.
        """
        rust = load_pipeline(settings)
        special_tokens = tuple(special_tokens or self.default_tokens)
        missing = [token for token in special_tokens if rust.token_to_id(token) is None]
        if missing:
            raise VocabularyError(f"The vocabulary has no token {', '.join(missing)}, which the model needs.")
        added = {index: token.content for index, token in rust.get_added_tokens_decoder().items()}
        pieces = [added.get(index) or rust.id_to_token(index) for index in range(rust.get_vocab_size())]
        if None in pieces:
            missing_id = pieces.index(None)
            raise VocabularyError(f"The vocabulary of {len(pieces)} tokens has no token with id {missing_id}.")
        raw = cast(list[str], pieces)
        specials = {*added.values(), *special_tokens}
        readable = _distinct(raw, [piece if piece in specials else self.show(piece) for piece in raw])
        # A piece that is a single space also begins a word.
        self._spellings = tuple(
            text if piece in specials or self.show(piece).isspace() else spelled(text)
            for piece, text in zip(raw, readable, strict=True)
        )
        self._special_tokens = special_tokens
        # Not in all settings: a token may have such a name too.
        steps = "" if rust.normalizer is None else rust.normalizer.__getstate__().decode()
        self.strips_accents = '"type":"StripAccents"' in steps
        self.lower_case = '"type":"Lowercase"' in steps
        self._set_up(rust, readable, special_tokens)

    def show(self, piece: str) -> str:
        """Return a piece of the vocabulary as readable text; subclasses override this."""
        return piece

    @property
    def spellings(self) -> tuple[str, ...]:
        """The V tokens in BERT's spelling, in order of their ids."""
        return self._spellings

    @functools.cached_property
    def cut_signature(self) -> str:
        """The SHA-256 of the normalizer, the pre-tokenizer, the model and the added tokens.

        It does not depend on the files that the tokenizer was read from.
        """
        settings = json.loads(self._rust.to_str())
        steps = [_cutting(settings[part]) for part in ("normalizer", "pre_tokenizer")]
        # The affixes of a byte-pair encoding are null or empty where it has none.
        model = {name: value for name, value in settings["model"].items() if value not in (None, "")}
        facts = json.dumps([*steps, model, settings["added_tokens"]], sort_keys=True)
        return hashlib.sha256(facts.encode()).hexdigest()

    def with_tokens_of(self, folder: Path) -> Self:
        """Return this tokenizer with the tokens that the files of a folder add to its vocabulary.

        Raises:
            VocabularyError: a file of the folder cannot be used, or an added token does not have the next id.
        """
        known = {token.content for token in self._rust.get_added_tokens_decoder().values()}
        if all(token["content"] in known for token in stated_tokens(folder)):
            return self  # before the vocabulary is listed, which takes a fifth of a second for 250,000 pieces
        added = [token for token in added_tokens(folder, self._rust.get_vocab()) if token["content"] not in known]
        rust = RustTokenizer.from_str(self._rust.to_str())
        rust.add_tokens([AddedToken(**{name: token[name] for name in token if name != "id"}) for token in added])
        for content, index in ((token["content"], token["id"]) for token in added):
            if rust.token_to_id(content) != index:
                raise VocabularyError(
                    f"{folder}: its tokenizer files add {content!r} with the id {index}, but the next id is "
                    f"{rust.token_to_id(content)}."
                )
        return self._with_pipeline(rust, self.vocab)

    def _with_pipeline(self, rust, vocab):
        return type(self)(rust.to_str(), self._special_tokens)

    def _arguments(self):
        return type(self), (self._rust.to_str(), self._special_tokens)

    def _add_rows(self, placeholders: tuple[str, ...]) -> None:
        super()._add_rows(placeholders)
        self._spellings += placeholders

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vocab_size} tokens)"

    @classmethod
    def from_settings(cls, path: Path, special_tokens: Sequence[str] | None = None) -> Self:
        """Read a tokenizer from a ``tokenizer.json``; errors name the file."""
        try:
            return cls(path.read_text(encoding="utf-8"), special_tokens)
        except (VocabularyError, UnicodeDecodeError) as error:
            raise VocabularyError(f"{path}: {error}") from None

    def save(self, folder: str | Path, model_max_length: int = 512) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``; subclasses add their vocabulary files."""
        from bert_tf.files import write_json, write_text

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / RUST_FILE, self._rust.to_str())
        roles = dict(zip(ROLES, self.special_tokens, strict=True))
        options = {
            "tokenizer_class": self.saved_class or self.transformers_class,
            "model_max_length": model_max_length,
            **roles,
            **self._further_settings(),
        }
        write_json(folder / CONFIG_FILE, options)

    def _further_settings(self) -> dict[str, Any]:
        """What else ``tokenizer_config.json`` must state, as Transformers prefers it to ``tokenizer.json``."""
        return {}

    def tokenize(self, text: str) -> Tokens:
        """Split a text into pieces.

        Args:
            text: str. Any text.

        Returns:
            `Tokens`: ids, readable pieces, offsets (without the space before a word) and word ids, without special
            tokens.

        Raises:
            TextError: the text is not a str, or holds half a surrogate pair.
        """
        check_text(text)
        encoding = self._rust.encode(text, add_special_tokens=False)
        offsets = self.spans(text, encoding)
        if offsets and not text.isascii():
            offsets = extend_over_combining_marks(text, offsets)
        return Tokens(
            ids=np.array(encoding.ids, dtype=np.int32),
            tokens=tuple(self.vocab[index] for index in encoding.ids),
            offsets=tuple(offsets),
            word_ids=tuple(self.words(text, offsets, cast(list[int], encoding.word_ids))),
        )

    def spans(self, text: str, encoding: RustEncoding) -> list[tuple[int, int]]:
        """Return the spans of the pieces in the text, without the spaces at their ends."""
        return [_trimmed(text, *offset) for offset in encoding.offsets]

    def words(self, text: str, offsets: Sequence[tuple[int, int]], rust_word_ids: Sequence[int]) -> Iterable[int]:
        """Return the word id of each piece.

        Args:
            text: str. The text.
            offsets: sequence of (int, int). The offsets of the pieces.
            rust_word_ids: sequence of int. The word ids that the Rust library returned.
        """
        return rust_word_ids


def spelled(piece: str) -> str:
    """Return a readable piece in BERT's spelling."""
    return piece[1:] if piece.startswith(" ") and len(piece) > 1 else f"##{piece}"


def _cutting(part: Any) -> Any:
    """What cuts text in the JSON of a normalizer or pre-tokenizer; a sequence of one step is this step."""
    if isinstance(part, list):
        return [_cutting(step) for step in part]
    if not isinstance(part, dict):
        return part
    kept = {name: _cutting(value) for name, value in part.items() if name != "trim_offsets"}
    steps = kept.get("normalizers", kept.get("pretokenizers", ()))
    return steps[0] if len(steps) == 1 else kept


def _distinct(raw: Sequence[str], readable: Sequence[str]) -> list[str]:
    """The readable pieces; the raw piece replaces a readable one that is a repetition or invisible."""
    seen: set[str] = set()
    result = []
    for piece, text in zip(raw, readable, strict=True):
        chosen = text if text.strip() and text not in seen else piece
        seen.add(chosen)
        result.append(chosen)
    return result


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without the spaces at its ends; a span of spaces only is unchanged."""
    inner = text[start:end]
    stripped = inner.strip()
    if not stripped:
        return start, end
    begin = start + len(inner) - len(inner.lstrip())
    return begin, begin + len(stripped)


def special_tokens_of(folder: Path) -> tuple[str, ...] | None:
    """Return the five special tokens in a folder's ``tokenizer_config.json`` or ``special_tokens_map.json``.

    None if one of them is in neither.
    """
    files = [read_json(folder / name) for name in (CONFIG_FILE, SPECIAL_FILE) if (folder / name).is_file()]
    values = [next((file[role] for file in files if file.get(role)), None) for role in ROLES]
    tokens = [value.get("content") if isinstance(value, dict) else value for value in values]
    return cast(tuple[str, ...], tuple(tokens)) if all(isinstance(token, str) for token in tokens) else None


def mark_special(rust: RustTokenizer, tokens: Sequence[str], mask: str) -> None:
    """Mark tokens of the vocabulary as special; the mask token includes the space before it, as released."""
    rust.add_special_tokens(
        [AddedToken(token, special=True, lstrip=token == mask, normalized=False) for token in tokens]
    )
