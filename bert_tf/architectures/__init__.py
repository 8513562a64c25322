"""BERT and the related architectures: one record per architecture, which describes its differences from BERT.

This package does not import TensorFlow.
"""

from bert_tf.architectures.albert import ALBERT
from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT
from bert_tf.architectures.distilbert import DISTILBERT
from bert_tf.architectures.electra import ELECTRA
from bert_tf.architectures.left_to_right import LEFT_TO_RIGHT
from bert_tf.architectures.roberta import ROBERTA
from bert_tf.architectures.two_one_way import TWO_ONE_WAY

#: model_type -> `Architecture`.
ARCHITECTURES = {
    architecture.model_type: architecture
    for architecture in (BERT, ROBERTA, DISTILBERT, ALBERT, ELECTRA, LEFT_TO_RIGHT, TWO_ONE_WAY)
}

__all__ = [
    "ALBERT",
    "BERT",
    "DISTILBERT",
    "ELECTRA",
    "LEFT_TO_RIGHT",
    "ARCHITECTURES",
    "ROBERTA",
    "TWO_ONE_WAY",
    "Architecture",
]
