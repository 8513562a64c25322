"""The layers of BERT and its family, one idea a file, in pure `keras.ops`."""

from bert_tf.layers.attention import MultiHeadSelfAttention
from bert_tf.layers.causal import (
    BetweenHead,
    LeftLayer,
    NextTokenHead,
    SharedEmbeddings,
    TwoOneWayLayer,
)
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder import EncoderLayer, FeedForward
from bert_tf.layers.heads import MaskedLMHead, NextSentenceHead, ReplacedTokenHead
from bert_tf.layers.pooler import Pooler

__all__ = [
    "BertEmbeddings",
    "BetweenHead",
    "EncoderLayer",
    "FeedForward",
    "LeftLayer",
    "MaskedLMHead",
    "MultiHeadSelfAttention",
    "NextSentenceHead",
    "NextTokenHead",
    "Pooler",
    "ReplacedTokenHead",
    "SharedEmbeddings",
    "TwoOneWayLayer",
]
