"""Masked examples as tf.train.Example in TFRecord, under the original's feature names.

The frame of a record (its length, the record, and a checksum of each) is written here and not by
TensorFlow's writer, which cannot go on with a file that is there. A shard is such frames one after another.

B batch, T tokens, P predictions a sequence.
"""

import struct

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
    from tensorflow.core.example import example_pb2

    columns = [(name, np.reshape(batch[name], (len(batch["token_ids"]), -1)).tolist()) for name in FEATURES]
    records = []
    for row in range(len(batch["token_ids"])):
        example = example_pb2.Example()
        features = example.features.feature
        for name, values in columns:
            feature = features[FEATURES[name]]
            kind = feature.float_list if name == "mask_weights" else feature.int64_list
            kind.value.extend(values[row])
        # The features are a map, whose order is otherwise left to chance.
        records.append(example.SerializeToString(deterministic=True))
    return records


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
    spec = {stored: tf.io.FixedLenFeature(sizes.get(name, [predictions]),
                                          tf.float32 if name == "mask_weights" else tf.int64)
            for name, stored in FEATURES.items()}
    try:
        with tf.device("/CPU:0"):
            found = tf.io.parse_example(tf.constant(records), spec)
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(f"These records are no examples of {length} tokens with {predictions} predictions: "
                         f"{error.message}") from error
    return {name: found[stored].numpy().astype(np.float32 if name == "mask_weights" else np.int32)
            for name, stored in FEATURES.items()}
