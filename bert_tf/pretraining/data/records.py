"""Encodes masked examples as tf.train.Example in TFRecord, with the feature names of google-research/bert.

Writing needs the protobuf library and not TensorFlow, which starts slowly. This module writes the frame of a record
(its length, the record, and a checksum of each) itself, as TensorFlow's writer cannot append to an existing file. A
shard is a sequence of frames.

Shapes: B batch, T tokens, P predicted positions of a sequence.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


#: Name in a batch -> name in google-research/bert's `create_pretraining_data.py`.
FEATURES = {
    "token_ids": "input_ids",
    "padding_mask": "input_mask",
    "segment_ids": "segment_ids",
    "mask_positions": "masked_lm_positions",
    "mask_labels": "masked_lm_ids",
    "mask_weights": "masked_lm_weights",
    "nsp_labels": "next_sentence_labels",
}


def encode(batch: dict[str, np.ndarray]) -> list[bytes]:
    """Serializes a batch as tf.train.Examples.

    Args:
        batch: dict of arrays with the keys of `FEATURES`; `mask_weights` float, the others int.

    Returns: list of B bytes objects.
    """
    if not (rows := len(batch["token_ids"])):
        return []
    example = _example_message()()
    columns = []
    for name, feature_name in FEATURES.items():
        feature = example.features.feature[feature_name]
        value_list = feature.float_list if name == "mask_weights" else feature.int64_list
        columns.append((value_list.value, np.reshape(batch[name], (rows, -1))))
    records = []
    for row in range(rows):
        # One message is filled again for each row: a new message costs as much time as filling it.
        for value, all_rows in columns:
            value[:] = all_rows[row].tolist()
        # The features are a map, whose order is otherwise random.
        records.append(example.SerializeToString(deterministic=True))
    return records


@cache
def _example_message():
    """The class of tf.train.Example (tensorflow/core/example/example.proto and feature.proto)."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def message(name, *fields, of=file.message_type):
        descriptor = of.add(name=name)
        for number, (field, kind, repeated) in fields:
            kind = {"type": kind} if isinstance(kind, int) else {"type": kinds.TYPE_MESSAGE, "type_name": kind}
            label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            descriptor.field.add(name=field, number=number, label=label, **kind)
        return descriptor

    message("FloatList", (1, ("value", kinds.TYPE_FLOAT, True)))
    message("Int64List", (1, ("value", kinds.TYPE_INT64, True)))
    feature = message(
        "Feature",
        (2, ("float_list", ".tensorflow.FloatList", False)),
        (3, ("int64_list", ".tensorflow.Int64List", False)),
    )
    feature.oneof_decl.add(name="kind")
    for field in feature.field:
        field.oneof_index = 0
    features = message("Features", (1, ("feature", ".tensorflow.Features.FeatureEntry", True)))
    entry = message(
        "FeatureEntry",
        (1, ("key", kinds.TYPE_STRING, False)),
        (2, ("value", ".tensorflow.Feature", False)),
        of=features.nested_type,
    )
    entry.options.map_entry = True
    message("Example", (1, ("features", ".tensorflow.Features", False)))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


def frame(record: bytes) -> bytes:
    """Adds the frame of a TFRecord file to a record.

    Args:
        record: bytes.

    Returns: bytes.
    """
    length = struct.pack("<Q", len(record))
    return b"".join((length, _checksum(length), record, _checksum(record)))


def _checksum(data):
    """TFRecord's masked CRC-32C, 4 bytes (tensorflow/core/lib/hash/crc32c.h)."""
    import google_crc32c

    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def decode(records: Sequence[bytes], length: int, predictions: int) -> dict[str, np.ndarray]:
    """Parses serialized examples.

    Args:
        records: list of B bytes objects.
        length: int. T.
        predictions: int. P.

    Returns: dict of arrays as returned by `masking.mask_batch`.

    Raises: ValueError if the records are not examples of these sizes.
    """
    import tensorflow as tf

    sizes = {"token_ids": [length], "padding_mask": [length], "segment_ids": [length], "nsp_labels": []}
    spec = {
        feature_name: tf.io.FixedLenFeature(
            sizes.get(name, [predictions]), tf.float32 if name == "mask_weights" else tf.int64
        )
        for name, feature_name in FEATURES.items()
    }
    try:
        with tf.device("/CPU:0"):
            features = tf.io.parse_example(tf.constant(records), spec)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(
            f"These records are no examples of {length} tokens with {predictions} predictions: {error.message}"
        ) from error
    return {
        name: features[feature_name].numpy().astype(np.float32 if name == "mask_weights" else np.int32)
        for name, feature_name in FEATURES.items()
    }
