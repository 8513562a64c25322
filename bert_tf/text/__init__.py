"""Text to token ids and back: WordPiece, byte-level and SentencePiece tokenizers with offsets, packing of pairs,
truncation, padding. No TensorFlow.
"""

from bert_tf.text.base import BaseTokenizer, Encoding, Tokens
from bert_tf.text.byte_level import ByteLevelTokenizer
from bert_tf.text.errors import TextError, VocabularyError
from bert_tf.text.folders import read_tokenizer
from bert_tf.text.packing import (
    PackedPair,
    Truncation,
    pack_pair,
    pad_batch,
    plan_truncation,
    truncate_longest_first,
)
from bert_tf.text.pieces import PieceTokenizer
from bert_tf.text.tokenizer import Tokenizer
from bert_tf.text.vocabulary import guess_lower_case, read_vocabulary

__all__ = [
    "BaseTokenizer",
    "ByteLevelTokenizer",
    "Encoding",
    "PackedPair",
    "PieceTokenizer",
    "TextError",
    "Tokenizer",
    "Tokens",
    "Truncation",
    "VocabularyError",
    "guess_lower_case",
    "pack_pair",
    "pad_batch",
    "plan_truncation",
    "read_tokenizer",
    "read_vocabulary",
    "truncate_longest_first",
]
