"""The safetensors of a folder: one file, or shards with an index.

The headers are read first, then the values of one tensor at a time. The file is mapped for each matrix and unmapped
at once, so that only the pages of one matrix are in memory, not the whole file beside the model.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import ml_dtypes  # noqa: F401  this import adds bfloat16 to NumPy
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from bert_tf.checkpoints.formats import compressed_tensors
from bert_tf.checkpoints.quantize import SCALE_SUFFIX, dequantize_rows
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.errors import CheckpointError
from bert_tf.files import atomic_write, read_json, system_errors, write_json

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
# The files that `write_tensors` and Transformers write, and those that a killed `write_tensors` leaves.
_WRITTEN_FILES = re.compile(r"(\.\d+-)?model(-\d{5,}-of-\d{5,})?\.safetensors")
_LFS_POINTER = b"version https://git-lfs"
_FLOATS = ("F64", "F32", "F16", "BF16")
# Values of the tensors that are read without opening the file again, which takes longer than reading them.
_SMALL = 65_536


def has_safetensors(folder: Path) -> bool:
    """Return whether the folder holds safetensors weights that can be read."""
    return (folder / INDEX_FILE).is_file() or _single_file(folder) is not None


def _single_file(folder):
    """The usual file of weights, else the only safetensors file in the folder, else None."""
    if (folder / SINGLE_FILE).is_file():
        return folder / SINGLE_FILE
    paths = [path for path in folder.glob("*.safetensors") if not path.name.startswith(".")]
    return paths[0] if len(paths) == 1 and not (folder / INDEX_FILE).is_file() else None


def open_tensors(folder: str | os.PathLike) -> dict[str, StoredTensor]:
    """Read the headers of a folder's safetensors.

    Returns:
        Dict of name in the file -> `StoredTensor`; eight-bit matrices are joined with their scales.

    Raises:
        CheckpointError: a file is missing, truncated or not safetensors, or an index does not fit its shards.
    """
    folder = Path(folder)
    if (single_file := _single_file(folder)) is not None:
        return _join_scales(_header(single_file))
    if not (folder / INDEX_FILE).is_file():
        raise CheckpointError(_no_safetensors(folder))
    weight_map = _weight_map(folder)
    tensors = {}
    for file in sorted(set(weight_map.values())):
        if Path(file).name != file or not ((folder / file).is_file() or (folder / file).is_symlink()):
            raise CheckpointError(f"{folder / INDEX_FILE} names the shard {file!r}, which is not in the folder.")
        tensors.update(_header(folder / file))
    for name, file in weight_map.items():
        if name not in tensors or tensors[name][0].file.name != file:
            raise CheckpointError(f"{folder / INDEX_FILE} places {name} in {file}, but that file does not have it.")
    return _join_scales(tensors)


def _weight_map(folder):
    """The name of the shard of each tensor, from the index."""
    weight_map = read_json(folder / INDEX_FILE).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise CheckpointError(f"{folder / INDEX_FILE} has no weight_map of tensor names to files.")
    return weight_map


def weight_files(folder: Path) -> list[str]:
    """The names of the files that `open_tensors` reads; other safetensors of the folder are not the model's.

    Raises:
        CheckpointError: the index is broken.
    """
    if (single_file := _single_file(folder)) is not None:
        return [single_file.name]
    return sorted(set(_weight_map(folder).values())) if (folder / INDEX_FILE).is_file() else []


def _no_safetensors(folder):
    if any(folder.glob("*.bin")) or any(folder.glob("*.pt")):
        return (
            f"{folder} holds only PyTorch pickle files (*.bin, *.pt), which can run code when opened and "
            "are never read; save the model as safetensors (Transformers: save_pretrained) and use that "
            "folder."
        )
    others = {
        "*.h5": "*.h5 (Keras, with another name than tf_model.h5)",
        "*.onnx": "*.onnx",
        "*.msgpack": "*.msgpack (Flax)",
    }
    other_formats = [title for pattern, title in others.items() if any(folder.glob(pattern))]
    if other_formats:
        return (
            f"{folder} has no safetensors, only {' and '.join(other_formats)}, which is not read; save the model as "
            "safetensors (Transformers: save_pretrained) and use that folder."
        )
    return f"{folder} has neither {SINGLE_FILE} nor {INDEX_FILE}; no weights to read."


def _is_lfs_pointer(path):
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(len(_LFS_POINTER)) == _LFS_POINTER


def _header(path):
    """Dict name -> (StoredTensor, safetensors dtype name)."""
    tensors = {}
    try:
        file = safe_open(os.fspath(path), framework="numpy")
        for name in file.offset_keys():
            header = file.get_slice(name)
            read = partial(_values, file, path, name)
            stored = StoredTensor(path, name, tuple(header.get_shape()), read, by_rows=True)
            tensors[name] = (stored, header.get_dtype())
    except (SafetensorError, OSError) as error:
        if _is_lfs_pointer(path):
            raise CheckpointError(
                f"{path} is a pointer of Git LFS, not the weights; run `git lfs pull` in the folder, or download it."
            ) from error
        if path.is_symlink() and not path.exists():
            raise CheckpointError(f"{path} is a link to a file that is not there; download it again.") from error
        raise CheckpointError(
            f"{path} is not a complete safetensors file ({error}; it has "
            f"{path.stat().st_size} bytes); copy or download it again."
        ) from error
    return tensors


def _values(file, path, name, rows=slice(None)):
    """Values of a tensor of an open file; a large one is read from the file opened for it alone, see above."""
    try:
        tensor = file.get_slice(name)
        if math.prod(tensor.get_shape()) <= _SMALL:
            return tensor[rows]
        with safe_open(os.fspath(path), framework="numpy") as own_file:
            return own_file.get_slice(name)[rows]
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: {name} cannot be read ({error}).") from error


def _join_scales(tensors):
    joined = compressed_tensors.unpacked_matrices({name: stored for name, (stored, _) in tensors.items()})
    parts = {name + ending for name in joined for ending in compressed_tensors.ENDINGS}
    for name, (stored, dtype) in tensors.items():
        if name in parts or name.endswith(SCALE_SUFFIX) and name.removesuffix(SCALE_SUFFIX) in tensors:
            continue
        if dtype == "I8":
            joined[name] = _eight_bit(stored, tensors.get(name + SCALE_SUFFIX))
        elif dtype in _FLOATS or name.endswith("_ids"):
            joined[name] = stored
        else:
            raise CheckpointError(
                f"{stored.file}: {name} is stored as {dtype}; weights are read from "
                f"{', '.join(_FLOATS)}, or I8 with scales."
            )
    return joined


def _eight_bit(stored, scale):
    rows = stored.shape[:1]
    if len(stored.shape) != 2 or scale is None or scale[0].shape != rows or scale[1] not in _FLOATS:
        actual = "missing" if scale is None else f"{scale[1]} of shape {scale[0].shape}"
        raise CheckpointError(
            f"{stored.file}: {stored.name} is stored in eight bits with shape "
            f"{stored.shape}, which needs {stored.name}{SCALE_SUFFIX} with one float for "
            f"each row; that tensor is {actual}."
        )

    def read(rows=slice(None)):
        return dequantize_rows(stored.read(rows), scale[0].read(rows))

    def read_eight_bit():
        return stored.read(), scale[0].read()

    return StoredTensor(stored.file, stored.name, stored.shape, read, True, read_eight_bit)


def write_tensors(
    folder: Path,
    tensors: Iterable[Mapping[str, np.ndarray]],
    sizes: Sequence[int],
    max_shard_bytes: int | None = None,
) -> list[str]:
    """Write weights as one file, or as shards with an index. Old files stay until all new files are written.

    Args:
        folder: Path. An existing folder.
        tensors: iterable of dicts of name -> array. The tensors of one dict are written to the same file.
        sizes: sequence of int. The bytes of each dict, in the same order.
        max_shard_bytes: int or None. The largest size of the tensors in one file; None for a single file. A
            larger tensor gets one file alone.

    Returns:
        List of the names of the files.

    Raises:
        OSError: a file cannot be written, for example because the disk is full. The message names the file; the
            old files are unchanged.
    """
    groups = _group_sizes(sizes, max_shard_bytes)
    names = (
        [SINGLE_FILE]
        if len(groups) == 1
        else [f"model-{index + 1:05d}-of-{len(groups):05d}.safetensors" for index in range(len(groups))]
    )
    source, total = iter(tensors), 0
    weight_map: dict[str, str] = {}
    with ExitStack() as files:
        for name, count in zip(names, groups, strict=True):
            shard: dict[str, np.ndarray] = {}
            for _ in range(count):
                shard.update(next(source))
            _write(files.enter_context(atomic_write(folder / name)), folder / name, shard)
            weight_map.update(dict.fromkeys(shard, name))
            total += sum(value.nbytes for value in shard.values())
    if len(names) > 1:
        write_json(folder / INDEX_FILE, {"metadata": {"total_size": total}, "weight_map": weight_map})
    _remove_stale(folder, names)
    return names


def _write(path, final_path, tensors):
    """Write one file at `path`; an error names `final_path`."""
    with system_errors(final_path, SafetensorError):
        # Transformers refuses a file that does not name its framework.
        save_file(
            {name: np.ascontiguousarray(value) for name, value in tensors.items()}, path, metadata={"format": "pt"}
        )


def _group_sizes(sizes, largest):
    """How many consecutive tensors go into each file."""
    if largest is None or sum(sizes) <= largest:
        return [len(sizes)]
    groups: list[int] = []
    room = 0
    for size in sizes:
        if not groups or size > room:
            groups.append(0)
            room = largest
        groups[-1] += 1
        room -= size
    return groups


def _remove_stale(folder, names):
    # Shards of an earlier save would be read too, so they are deleted; so are partly written files of a killed save.
    for path in list(folder.iterdir()):
        if _WRITTEN_FILES.fullmatch(path.name) and path.name not in names:
            path.unlink(missing_ok=True)
    if len(names) == 1:
        (folder / INDEX_FILE).unlink(missing_ok=True)
