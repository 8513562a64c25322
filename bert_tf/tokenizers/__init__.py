"""Tokenizers: WordPiece, byte-level BPE and SentencePiece, with character offsets; packing, truncation and padding.

This package does not import TensorFlow.
"""

from bert_tf.errors import TextError, VocabularyError
from bert_tf.tokenizers.base import BaseTokenizer, Encoding, Tokens
from bert_tf.tokenizers.byte_level_bpe import ByteLevelTokenizer, ModernBertTokenizer
from bert_tf.tokenizers.packing import (
    PackedPair,
    Truncation,
    pack_pair,
    pad_batch,
    plan_truncation,
    truncate_longest_first,
)
from bert_tf.tokenizers.sentence_piece import SentencePieceTokenizer
from bert_tf.tokenizers.tokenizer_folder import read_tokenizer
from bert_tf.tokenizers.vocabulary import guess_lower_case, read_vocabulary
from bert_tf.tokenizers.wordpiece import Tokenizer

__all__ = [
    "BaseTokenizer",
    "ByteLevelTokenizer",
    "Encoding",
    "ModernBertTokenizer",
    "PackedPair",
    "SentencePieceTokenizer",
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
