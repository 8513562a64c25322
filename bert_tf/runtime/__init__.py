"""Fast forward passes of a model with `Runtime`, on OpenVINO or TensorFlow (see docs/explanation/inference.md)."""

from bert_tf.errors import RuntimeInputError
from bert_tf.runtime.runtime import ENGINES, PRECISIONS, Runtime

__all__ = ["ENGINES", "PRECISIONS", "Runtime", "RuntimeInputError"]
