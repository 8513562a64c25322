"""Matrices in eight bits as Transformers reads them by the package compressed-tensors, format "pack-quantized".

A row of a matrix [out, in] has one scale, as in `bert_tf.checkpoints.quantize`. Four values, each plus 128, are in one
int32, the first in its lowest byte. Three tensors stand for the matrix NAME: NAME_packed int32 [out, ceil(in / 4)],
NAME_scale float [out, 1] and NAME_shape int64 [2]. The settings name the layers that have them. Source: the files that
compressed-tensors 0.20 writes.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from bert_tf.checkpoints.quantize import dequantize_rows, quantize_rows
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.errors import CheckpointError
from bert_tf.parameters import is_transposed

#: The endings of the names of the three tensors.
ENDINGS = PACKED, SCALE, SHAPE = "_packed", "_scale", "_shape"
_IN_A_WORD, _OFFSET = 4, 128


def is_packed(name: str, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor is stored in eight bits: the matrices of dense layers in encoder layers are.

    Args:
        name: str. The canonical name.
        shape: tuple of int. The shape.
    """
    return name.startswith("bert.encoder.layer.") and len(shape) == 2 and is_transposed(name)


def packed_bytes(shape: tuple[int, ...]) -> int:
    """Return the bytes of a matrix [out, in] in this format."""
    rows, columns = shape
    return 4 * rows * (_words(columns) + 1) + 16


def pack(name: str, matrix: np.ndarray) -> dict[str, np.ndarray]:
    """Return the tensors, by name, that stand for a float [out, in] matrix."""
    integers, scales = quantize_rows(matrix)
    rows, columns = integers.shape
    padded = np.zeros((rows, _words(columns) * _IN_A_WORD), np.uint8)
    padded[:, :columns] = integers.astype(np.int16) + _OFFSET
    return {
        name + PACKED: padded.view("<i4"),
        name + SCALE: scales[:, None],
        name + SHAPE: np.array([rows, columns], np.int64),
    }


def _words(columns):
    return -(-columns // _IN_A_WORD)


def settings(names: Collection[str], prefix: str) -> dict[str, Any]:
    """Return the entry `quantization_config` of config.json.

    Args:
        names: collection of str. The names of the packed matrices in the file.
        prefix: str. What stands before the names of the encoder in a model with a head.
    """
    layers = {re.sub(r"\d+", "<n>", name.removeprefix(f"{prefix}.").removesuffix(".weight")) for name in names}
    targets = [rf"re:(.*\.)?{re.escape(layer)}$".replace("<n>", r"\d+") for layer in sorted(layers)]
    weights = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False}
    return {
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "quantization_status": "compressed",
            "ignore": [],
            "config_groups": {"group_0": {"targets": targets, "weights": weights}},
        }
    }


def unpacked_matrices(tensors: Mapping[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Return the matrices for which three tensors stand, by their names.

    Args:
        tensors: dict of name in the file -> `StoredTensor`.

    Raises:
        CheckpointError: a tensor is missing, or the matrix is not in eight bits with one scale for each row.
    """
    names = [name.removesuffix(PACKED) for name in tensors if name.endswith(PACKED)]
    return {name: _unpacked(tensors, name) for name in names}


def _unpacked(tensors, name):
    packed = tensors[name + PACKED]
    scale, shape = tensors.get(name + SCALE), tensors.get(name + SHAPE)
    if scale is None or shape is None or shape.shape != (2,):
        raise CheckpointError(
            f"{packed.file}: {packed.name} needs {name}{SCALE} and {name}{SHAPE}, two numbers, beside it; copy or "
            "download it again."
        )
    rows, columns = (int(value) for value in shape.read())
    if packed.shape != (rows, _words(columns)) or scale.shape != (rows, 1):
        raise CheckpointError(
            f"{packed.file}: {name} [{rows}, {columns}] is packed as {list(packed.shape)} with scales "
            f"{list(scale.shape)}; only eight bits with one scale for each row are read. Save it without quantization "
            "(Transformers: `from_pretrained(FOLDER, quantization_config=CompressedTensorsConfig(dequantize=True))`)."
        )

    def integers(chosen=slice(None)):
        bytes_ = np.ascontiguousarray(packed.read(chosen)).astype("<i4", copy=False).view(np.uint8)
        return (bytes_[:, :columns].astype(np.int16) - _OFFSET).astype(np.int8)

    def scales(chosen=slice(None)):
        return scale.read(chosen)[:, 0].astype(np.float32)

    def read(chosen=slice(None)):
        return dequantize_rows(integers(chosen), scales(chosen))

    return StoredTensor(packed.file, name, (rows, columns), read, True, lambda: (integers(), scales()))
