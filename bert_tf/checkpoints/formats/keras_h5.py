"""tf_model.h5, the weights that Transformers before version 5 saved for its TensorFlow classes. h5py runs no code.

A variable's path is LAYER/MODEL/NAMES, as "bert/tf_bert_for_pre_training/bert/encoder/layer_._0/output/dense/kernel:0".
Source: `convert_tf_weight_name_to_pt_weight_name` of Transformers 4, modeling_tf_pytorch_utils.py.
"""

import os
import re
from pathlib import Path

from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.errors import CheckpointError

H5_FILE = "tf_model.h5"
_LAST = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}
#: What h5py raises for a file with changed bytes.
DAMAGED = (OSError, RuntimeError, KeyError, ValueError, TypeError)
_MOST_COMPRESSED = 100  # times the size of the file: weights hardly compress, zeros of a new model do
# What Keras stores beside the weights of a model that was trained.
_OTHERS = ("optimizer_weights", "top_level_model_weights")


def open_h5(folder: str | os.PathLike) -> dict[str, StoredTensor]:
    """Read the names and shapes of a tf_model.h5.

    Returns:
        Dict of the name in PyTorch's files -> `StoredTensor`, in their orientation (dense matrices [out, in]).

    Raises:
        CheckpointError: the file is not complete, or two of its variables have the same name.
    """
    path = Path(folder) / H5_FILE
    tensors: dict[str, StoredTensor] = {}
    for key, shape in dataset_shapes(path).items():
        if key.startswith(_OTHERS):
            continue
        name, is_transposed = pytorch_name(key)
        if name in tensors:
            raise CheckpointError(f"{path} has {name} twice, as {tensors[name].name} and as {key}.")
        tensors[name] = _stored(path, key, shape, is_transposed)
    return tensors


def dataset_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Read the shapes of all data sets of an HDF5 file: dict of key -> shape.

    Raises:
        CheckpointError: the file is not complete, keeps values in another file of this machine, or declares many more
            values than it holds.
    """
    import h5py

    shapes, declared, elsewhere = {}, 0, []

    def add(key, item):
        nonlocal declared
        if isinstance(item, h5py.Dataset):
            if not isinstance(key, str):
                raise ValueError(f"the name {key!r:.60} is no text")
            shapes[key] = item.shape
            declared += item.nbytes
            if item.external or item.is_virtual:
                elsewhere.append(key)

    try:
        with h5py.File(path) as file:
            file.visititems(add)
        size = path.stat().st_size
    except DAMAGED as error:
        raise CheckpointError(f"{path} is not a complete HDF5 file ({error}); copy or download it again.") from error
    if elsewhere:
        raise CheckpointError(
            f"{path} keeps {elsewhere[0]} in another file, which is not read; do not trust this model."
        )
    if declared > _MOST_COMPRESSED * size:
        raise CheckpointError(
            f"{path} has {size:,} bytes and declares {declared:,} bytes of values; do not trust this model."
        )
    return shapes


def pytorch_name(key: str) -> tuple[str, bool]:
    """Return the name of a variable in PyTorch's files, and whether its matrix is transposed there."""
    path = key.split("/", 1)[-1].removesuffix(":0")  # without the group of the layer
    path = re.sub(r"/[^/]*___([^/]*)/", r"/\1/", path).replace("_._", "/")
    parts = [part for part in path.split("/") if part][1:]  # without the name of the model
    last = parts[-1] if parts else path
    return ".".join([*parts[:-1], _LAST.get(last, last)]), last == "kernel"


def _stored(path, key, shape, is_transposed):
    def read(rows=slice(None)):
        import h5py

        try:
            with h5py.File(path) as file:
                return file[key][()].T[rows] if is_transposed else file[key][rows]
        except DAMAGED as error:
            raise CheckpointError(f"{path}: {key} cannot be read ({error}); copy or download it again.") from error

    return StoredTensor(path, key, shape[::-1] if is_transposed else shape, read, by_rows=not is_transposed)
