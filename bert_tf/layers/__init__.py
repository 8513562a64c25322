"""The Keras layers of BERT and the related architectures, written with `keras.ops`."""

from bert_tf.hook_points import HOOK_POINTS
from bert_tf.layers.attention import MultiHeadSelfAttention
from bert_tf.layers.embeddings import BertEmbeddings
from bert_tf.layers.encoder import EncoderLayer, FeedForward
from bert_tf.layers.heads import MaskedLMHead, NextSentenceHead, ReplacedTokenHead
from bert_tf.layers.pooler import Pooler

__all__ = [
    "HOOK_POINTS",
    "BertEmbeddings",
    "EncoderLayer",
    "FeedForward",
    "MaskedLMHead",
    "MultiHeadSelfAttention",
    "NextSentenceHead",
    "Pooler",
    "ReplacedTokenHead",
]
