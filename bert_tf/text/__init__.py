"""Text to token ids and back: WordPiece with offsets, pair packing, truncation, padding. No TensorFlow."""

from bert_tf.text.errors import TextError, VocabularyError
from bert_tf.text.packing import (
    PackedPair,
    Truncation,
    pack_pair,
    pad_batch,
    plan_truncation,
    truncate_longest_first,
)
from bert_tf.text.tokenizer import Encoding, Tokenizer, Tokens
from bert_tf.text.vocabulary import guess_lower_case, read_vocabulary

__all__ = [
    "Encoding",
    "PackedPair",
    "TextError",
    "Tokenizer",
    "Tokens",
    "Truncation",
    "VocabularyError",
    "guess_lower_case",
    "pack_pair",
    "pad_batch",
    "plan_truncation",
    "read_vocabulary",
    "truncate_longest_first",
]
