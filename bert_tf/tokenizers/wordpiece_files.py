"""The tokenizer files of a WordPiece folder: vocab.txt or tokenizer.json, and the files that add tokens to them.

tokenizer.json states the whole pipeline, so it counts more than vocab.txt; ``tokenizer_config.json`` counts more than
both for the options that it names, as in Transformers. Source of the formats: Transformers 5.23 and tokenizers 0.23.
"""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import processors

from bert_tf.errors import VocabularyError
from bert_tf.tokenizers.vocabulary import (
    ADDED_FILE,
    CONFIG_FILE,
    ROLES,
    RUST_FILE,
    SPECIAL_FILE,
    SPECIAL_TOKENS,
    UNK,
    VOCABULARY_FILE,
    check_vocabulary,
    guess_lower_case,
    read_json,
    read_vocabulary,
)

# Option of the tokenizer -> key of `BertNormalizer` in tokenizer.json.
_OPTIONS = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}
#: Transformers' classes that state nothing of how text is cut.
GENERIC_CLASSES = ("PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend")
_FLAGS = ("single_word", "lstrip", "rstrip")
_LONGEST_WORD = 100  # BERT's max_input_chars_per_word


@dataclass(frozen=True)
class WordPieceFiles:
    """What the tokenizer files of a folder state.

    Attributes:
        vocab: tuple of str. The tokens in order of their ids, with the added ones.
        options: dict. ``do_lower_case``; also ``strip_accents`` and ``tokenize_chinese_chars``, if a file states them.
        special_tokens: tuple of str. The padding, unknown, beginning, separator and mask token.
        pipeline: str or None. The content of a tokenizer.json with every added token; None if BERT's own pipeline
            with these options gives the same tokens.
    """

    vocab: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    special_tokens: tuple[str, ...] = SPECIAL_TOKENS
    pipeline: str | None = None


def read_wordpiece_files(folder: str | Path) -> WordPieceFiles:
    """Read the WordPiece tokenizer files of a model folder.

    Raises:
        FileNotFoundError: the folder holds neither vocab.txt nor tokenizer.json.
        VocabularyError: a file cannot be used; the message names it.
    """
    folder = Path(folder)
    config, special_map = (optional_json(folder / name) for name in (CONFIG_FILE, SPECIAL_FILE))
    specials = tuple(
        _content(config.get(role)) or _content(special_map.get(role)) or token
        for role, token in zip(ROLES, SPECIAL_TOKENS, strict=True)
    )
    if (folder / RUST_FILE).is_file():
        source, data = folder / RUST_FILE, _read_tokenizer_json(folder / RUST_FILE)
        ids = data["model"]["vocab"]
    elif (folder / VOCABULARY_FILE).is_file():
        source, data = folder / VOCABULARY_FILE, {}
        ids = {token: index for index, token in enumerate(read_vocabulary(source, specials))}
    else:
        raise FileNotFoundError(
            f"{folder} holds neither {VOCABULARY_FILE} nor {RUST_FILE}: choose the folder of a BERT model."
        )
    options = _options(folder, config, data)
    options.setdefault("do_lower_case", guess_lower_case(ids))
    added = added_tokens(folder, ids, data.get("added_tokens"))
    base_ids, ids = ids, {**ids, **{token["content"]: token["id"] for token in added}}
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise VocabularyError(f"{source}: the ids of its vocabulary do not run from 0 to {len(tokens) - 1}.")
    vocab = check_vocabulary(tokens, source=str(source), special_tokens=specials)
    if specials == SPECIAL_TOKENS and _is_berts_pipeline(data) and all(map(_is_special_of_bert, added)):
        return WordPieceFiles(vocab, options)
    pipeline = _pipeline(data, base_ids, options, vocab, specials, added)
    unknown = pipeline["model"].get("unk_token", UNK)
    if unknown not in list(base_ids):
        raise VocabularyError(
            f"{source}: unk_token {unknown!r:.60}, which stands for unknown words, is no token of the vocabulary; copy "
            "or download the file again."
        )
    return WordPieceFiles(vocab, options, specials, json.dumps(pipeline, ensure_ascii=False))


def optional_json(path: Path) -> dict[str, Any]:
    """The content of a JSON file; {} if there is no such file."""
    return read_json(path) if path.is_file() else {}


def _content(value):
    """The text of a token, which is stored as text or as an object with its flags; None if it is neither."""
    value = value.get("content") if isinstance(value, dict) else value
    return value if isinstance(value, str) else None


def _read_tokenizer_json(path):
    data = read_json(path)
    model = data.get("model")
    # Files of old versions have no type.
    kind = model.get("type", "BPE" if "merges" in model else "WordPiece") if isinstance(model, dict) else None
    if not isinstance(model, dict) or kind != "WordPiece" or not isinstance(model.get("vocab"), dict):
        raise VocabularyError(f"{path} is not a WordPiece tokenizer: a BERT model is needed.")
    wrong = next((token for token, index in model["vocab"].items() if type(index) is not int), None)
    if wrong is not None:
        raise VocabularyError(
            f"{path}: the id of {wrong!r} is {model['vocab'][wrong]!r}, which is no whole number; "
            "copy or download the file again."
        )
    for part in ("normalizer", "pre_tokenizer", "post_processor"):
        if not isinstance(data.get(part), dict | None):
            raise VocabularyError(f"{path}: its {part} is {data[part]!r:.60}, but must be an object or null.")
    return data


def _options(folder, config, data):
    """The options that the files state. A pipeline without BERT's normalizer counts more than the settings."""
    normalizer = data.get("normalizer") or {}
    if data and normalizer.get("type") != "BertNormalizer":
        kinds = _kinds(normalizer)
        return {"do_lower_case": "Lowercase" in kinds, "strip_accents": "StripAccents" in kinds}
    options = {option: normalizer[key] for option, key in _OPTIONS.items() if normalizer.get(key) is not None}
    if not data or config.get("tokenizer_class") not in GENERIC_CLASSES:  # these take tokenizer.json as it is
        options |= {option: config[option] for option in _OPTIONS if config.get(option) is not None}
    for option, value in options.items():
        if not isinstance(value, bool):
            raise VocabularyError(f"{folder}: {option} is {value!r} in its tokenizer files, but must be true or false.")
    return options


def _kinds(normalizer):
    """The types of a normalizer and of the normalizers in it."""
    parts = normalizer.get("normalizers")
    inner = [_kinds(part) for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return {normalizer.get("type")}.union(*inner)


def added_tokens(folder: Path, ids: dict[str, int], in_pipeline: Any = None) -> list[dict[str, Any]]:
    """Return the tokens that the files of a folder add to a vocabulary, and which are never split.

    Args:
        folder: path. The model folder.
        ids: dict of token -> id. The vocabulary.
        in_pipeline: list of dict or None. The "added_tokens" of a tokenizer.json.

    Returns:
        List of dict, as in the "added_tokens" of a tokenizer.json, in order of their ids.

    Raises:
        VocabularyError: a file of the folder cannot be used.
    """
    stated = stated_tokens(folder, in_pipeline)
    added: dict[str, dict] = {}
    next_id = 1 + max([*ids.values(), *(token["id"] for token in stated if "id" in token)], default=-1)
    for token in stated:
        content = token["content"]
        if content in added:
            continue
        index = ids.get(content, token.get("id"))
        if index is None:
            index, next_id = next_id, next_id + 1
        is_special = bool(token.get("special", False))
        flags = {flag: bool(token.get(flag, False)) for flag in _FLAGS}
        normalized = bool(token.get("normalized", not is_special))
        added[content] = {
            "id": index,
            "content": content,
            **flags,
            "normalized": normalized,
            "special": is_special,
        }
    return sorted(added.values(), key=lambda token: token["id"])


def stated_tokens(folder: Path, in_pipeline: Any = None) -> list[dict[str, Any]]:
    """Return the tokens that the files of a folder state beside its vocabulary, as the files state them.

    The arguments and errors are those of `added_tokens`. Each token has its "content"; an "id" is a whole number.
    """
    config, special_map = (optional_json(folder / name) for name in (CONFIG_FILE, SPECIAL_FILE))
    stated = _list(in_pipeline, folder / RUST_FILE)
    decoder = config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise VocabularyError(
            f"{folder / CONFIG_FILE}: its added_tokens_decoder is {decoder!r:.60}, but must be an object."
        )
    stated += [{"id": index, **token} for index, token in decoder.items() if isinstance(token, dict)]
    special = [
        token
        for values in (config, special_map)
        for key in ("additional_special_tokens", "extra_special_tokens")
        for token in _several(values.get(key))
    ]
    names = {_content(token) for token in special}
    stated += [
        {"id": index, "content": token, "special": token in names}
        for token, index in optional_json(folder / ADDED_FILE).items()
    ]
    stated += [{"content": _content(token), "special": True} for token in special]
    for token in stated:
        content = token.get("content")
        if not isinstance(content, str) or not content:
            raise VocabularyError(f"{folder}: its tokenizer files add the token {content!r}, which is no text.")
    return [{**token, "id": _whole(folder, token["id"])} if "id" in token else token for token in stated]


def _list(value, path):
    if not isinstance(value, list | None) or not all(isinstance(token, dict) for token in value or ()):
        raise VocabularyError(f"{path}: its added_tokens are no list of objects; copy or download the file again.")
    return list(value or ())


def _several(value):
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _whole(folder, index):
    try:
        return int(index)
    except (TypeError, ValueError):
        raise VocabularyError(f"{folder}: its tokenizer files add a token with the id {index!r}.") from None


def _is_berts_pipeline(data):
    if not data:
        return True
    normalizer, pre_tokenizer, model = (data.get(part) or {} for part in ("normalizer", "pre_tokenizer", "model"))
    return (
        normalizer.get("type") == "BertNormalizer"
        and normalizer.get("clean_text") is True
        and pre_tokenizer == {"type": "BertPreTokenizer"}
        and _packs_as_bert(data.get("post_processor"))
        and model.get("unk_token") == UNK
        and model.get("continuing_subword_prefix", "##") == "##"
        and model.get("max_input_chars_per_word", _LONGEST_WORD) == _LONGEST_WORD
    )


def _packs_as_bert(post_processor):
    """Whether pairs are packed as [CLS] A [SEP] B [SEP], with segment 1 for B."""
    if post_processor is None or post_processor.get("type") == "BertProcessing":
        return True
    pair = post_processor.get("pair")
    if post_processor.get("type") != "TemplateProcessing" or not isinstance(pair, list):
        return False
    # Which token stands for [CLS] or [SEP] is in `special_tokens` of `WordPieceFiles`.
    segments = [
        (kind, content.get("type_id")) for part in pair for kind, content in part.items() if isinstance(content, dict)
    ]
    special, sequence = "SpecialToken", "Sequence"
    return segments == [(special, 0), (sequence, 0), (special, 0), (sequence, 1), (special, 1)]


def _is_special_of_bert(token):
    plain = token["special"] and not token["normalized"] and not any(token[flag] for flag in _FLAGS)
    return token["content"] in SPECIAL_TOKENS and plain


def berts_packing(special_tokens: Sequence[str], vocab: Sequence[str]) -> processors.TemplateProcessing:
    """BERT's packing, [CLS] A [SEP] B [SEP] with segment 1 for B, for other readers of a pipeline."""
    _, _, first, last, _ = special_tokens
    return processors.TemplateProcessing(
        single=f"{first}:0 $A:0 {last}:0",
        pair=f"{first}:0 $A:0 {last}:0 $B:1 {last}:1",
        special_tokens=[(token, vocab.index(token)) for token in (first, last)],
    )


def _pipeline(data, base_ids, options, vocab, specials, added):
    """The content of a tokenizer.json that gives the folder's tokens."""
    bert = {
        "version": "1.0",
        "normalizer": {"type": "BertNormalizer", "clean_text": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": specials[1],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": _LONGEST_WORD,
        },
    }
    pipeline: dict[str, Any] = copy.deepcopy(data) or bert
    if (pipeline.get("normalizer") or {}).get("type") == "BertNormalizer":
        stated = {key: options.get(option) for option, key in _OPTIONS.items()}
        stated["handle_chinese_chars"] = options.get("tokenize_chinese_chars", True)
        pipeline["normalizer"] |= stated
    known = {token["content"] for token in added}
    flags = dict.fromkeys((*_FLAGS, "normalized"), False) | {"special": True}
    added = [*added, *({"id": vocab.index(t), "content": t, **flags} for t in specials if t not in known)]
    pipeline["model"]["vocab"] = base_ids
    pipeline["added_tokens"] = sorted(added, key=lambda token: token["id"])
    if pipeline.get("post_processor") is None:
        pipeline["post_processor"] = json.loads(berts_packing(specials, vocab).__getstate__())
    return {**pipeline, "truncation": None, "padding": None}
