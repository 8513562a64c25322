"""The tensors of LoRA in a delta folder: the two factors of the update of a matrix of the base model.

R rank. Source: Hu et al. 2021, section 4.1; the names are those of the library PEFT without its prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bert_tf.checkpoints.quantize import dequantize_rows, quantize_rows
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.errors import CheckpointError

_DOWN, _UP = ".lora_A.weight", ".lora_B.weight"


def lora_names(name: str) -> tuple[str, str]:
    """The names of the factors [R, in] and [out, R] of the update of a matrix [out, in]."""
    stem = name.removesuffix(".weight")
    return stem + _DOWN, stem + _UP


def is_lora(name: str) -> bool:
    """Whether a tensor of this name is a factor of an update."""
    return name.endswith((_DOWN, _UP))


def merged(
    folder: Path, tensors: Mapping[str, StoredTensor], factors: Mapping[str, StoredTensor]
) -> dict[str, StoredTensor]:
    """Tensors with the updates added to them when they are read.

    Where the matrix of the base model is stored in eight bits, the sum is rounded to eight bits too: the model takes no
    more memory than its base model, and no more time for a forward pass.

    Args:
        folder: Path. The delta folder, for the messages.
        tensors: dict of canonical name -> `StoredTensor` of the base model.
        factors: dict of canonical name -> `StoredTensor`, the factors.

    Returns: dict of canonical name -> `StoredTensor`.

    Raises: CheckpointError if a factor has no matrix or no partner, or another shape.
    """
    updated = dict(tensors)
    stems = {name.removesuffix(_DOWN).removesuffix(_UP) for name in factors}
    for stem in sorted(stems):
        name = f"{stem}.weight"
        down, up = (factors.get(one) for one in lora_names(name))
        if name not in tensors or down is None or up is None:
            raise CheckpointError(
                f"{folder}: the update of {name} has no matrix in the base model, or only one factor."
            )
        if (up.shape[0], down.shape[1]) != tensors[name].shape or up.shape[1] != down.shape[0]:
            raise CheckpointError(
                f"{folder}: the factors {up.shape} and {down.shape} of {name} do not fit its shape "
                f"{tensors[name].shape}."
            )
        updated[name] = _sum(tensors[name], down, up)
    return updated


def _sum(tensor, down, up):
    def read_sum(rows=slice(None)):
        update = up.float32(rows) @ down.float32()
        return tensor.float32(rows) + update

    if tensor.read_eight_bit is None:
        return replace(tensor, read=read_sum)
    return replace(
        tensor,
        read=lambda rows=slice(None): dequantize_rows(*quantize_rows(read_sum(rows))),
        read_eight_bit=lambda: quantize_rows(read_sum()),
    )
