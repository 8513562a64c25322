"""What can be read out of one forward pass. Everything here is NumPy; nothing imports TensorFlow."""

from bert_tf.explain.answer import Answer, answer_from
from bert_tf.explain.attention import HeadSummary, attention_between, summarise_heads
from bert_tf.explain.compare import Comparison, MaskAgreement, aligned_layers, compare, jensen_shannon
from bert_tf.explain.errors import (
    EmptyText,
    InputError,
    MaskPositionError,
    MaskTruncated,
    NotComparable,
    NothingToPredict,
    WordNotFound,
)
from bert_tf.explain.fill_text import text_with
from bert_tf.explain.joint import JointFill, fill_jointly
from bert_tf.explain.predictions import MaskPrediction, Prediction, fill_mask
from bert_tf.explain.trace import NextSentence, Trace
from bert_tf.explain.words import Word, WordSpan, words_of

__all__ = [
    "Answer",
    "Comparison",
    "EmptyText",
    "HeadSummary",
    "InputError",
    "JointFill",
    "MaskAgreement",
    "MaskPositionError",
    "MaskPrediction",
    "MaskTruncated",
    "NextSentence",
    "NotComparable",
    "NothingToPredict",
    "Prediction",
    "Trace",
    "Word",
    "WordNotFound",
    "WordSpan",
    "aligned_layers",
    "answer_from",
    "attention_between",
    "compare",
    "fill_jointly",
    "fill_mask",
    "jensen_shannon",
    "summarise_heads",
    "text_with",
    "words_of",
]
