"""Masked examples as tf.train.Example in TFRecord, under the original's feature names.

To write them takes the protobuf library and no TensorFlow, which takes long to start. The frame of a record
(its length, the record, and a checksum of each) is written here, as TensorFlow's writer cannot go on with a
file that is there. A shard is such frames one after another.

B batch, T tokens, P predictions a sequence.
"""

import struct
from functools import cache

import numpy as np

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


def encode(batch):
    """A batch as serialized tf.train.Examples: list of B bytes.

    Args:
        batch: dict of arrays with the keys of `FEATURES`; `mask_weights` float, the rest int.
    """
    if not (rows := len(batch["token_ids"])):
        return []
    example = _example_message()()
    columns = []
    for name, stored in FEATURES.items():
        feature = example.features.feature[stored]
        kind = feature.float_list if name == "mask_weights" else feature.int64_list
        columns.append((kind.value, np.reshape(batch[name], (rows, -1))))
    records = []
    for row in range(rows):
        # One message filled again and again: to make one takes as long as to fill it.
        for value, all_rows in columns:
            value[:] = all_rows[row].tolist()
        # The features are a map, whose order is otherwise left to chance.
        records.append(example.SerializeToString(deterministic=True))
    return records


@cache
def _example_message():
    """The class of tf.train.Example (tensorflow/core/example/example.proto and feature.proto)."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto

    def message(name, *fields, of=file.message_type):
        made = of.add(name=name)
        for number, (field, kind, repeated) in fields:
            kind = {"type": kind} if isinstance(kind, int) else {"type": kinds.TYPE_MESSAGE, "type_name": kind}
            label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            made.field.add(name=field, number=number, label=label, **kind)
        return made

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


def frame(record):
    """A record as it stands in a TFRecord file: bytes."""
    length = struct.pack("<Q", len(record))
    return b"".join((length, _checksum(length), record, _checksum(record)))


def _checksum(data):
    """TFRecord's masked CRC-32C, 4 bytes (tensorflow/core/lib/hash/crc32c.h)."""
    import google_crc32c

    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def decode(records, length, predictions):
    """Serialized examples as a batch: dict of arrays as `masks.mask_batch` gives it.

    Args:
        records: list of B bytes. length: T. predictions: P.

    Raises: ValueError if they are no such examples.
    """
    import tensorflow as tf

    sizes = {"token_ids": [length], "padding_mask": [length], "segment_ids": [length], "nsp_labels": []}
    spec = {
        stored: tf.io.FixedLenFeature(
            sizes.get(name, [predictions]), tf.float32 if name == "mask_weights" else tf.int64
        )
        for name, stored in FEATURES.items()
    }
    try:
        with tf.device("/CPU:0"):
            found = tf.io.parse_example(tf.constant(records), spec)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(
            f"These records are no examples of {length} tokens with {predictions} predictions: {error.message}"
        ) from error
    return {
        name: found[stored].numpy().astype(np.float32 if name == "mask_weights" else np.int32)
        for name, stored in FEATURES.items()
    }
