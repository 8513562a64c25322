"""Google's TensorFlow checkpoints: bert_config.json, vocab.txt, bert_model.ckpt.index and .data-*.

The names are those of google-research/bert, `modeling.py` and `run_pretraining.py`, and of the repositories of ALBERT
and ELECTRA (`bert_tf.architectures`). Dense kernels are [in, out] in these files.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bert_tf.architectures.architecture import rename
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import heads_present, tensor_shapes
from bert_tf.config import GOOGLE_SETTINGS, BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.files import atomic_write, read_json, system_errors, write_json
from bert_tf.tokenizers import BaseTokenizer, read_tokenizer

PREFIX = "bert_model.ckpt"
_EPSILON = 1e-12  # fixed in Google's code
_TABLE_END, _TABLE_FOOTER = bytes.fromhex("57fb808b247547db"), 48  # the magic number of a table, the size of its footer
# A checkpoint of a training run also holds the optimiser's moments and counters.
_TRAINING_STATE = re.compile(r"(^|/)(adam_[mv](_\d+)?|Adam(_\d+)?|global_step|beta[12]_power|lamb_[mv])$")


def find_prefix(folder: str | os.PathLike) -> Path | None:
    """Return the path of the folder's checkpoint without `.index`, or None.

    If there are several, `bert_model.ckpt` is chosen, else the checkpoint of the latest step (`model.ckpt-1000`).
    """

    def rank(path):
        step = re.search(r"-(\d+)\.index$", path.name)
        return path.name == f"{PREFIX}.index", int(step.group(1)) if step else -1, path.name

    paths = sorted(Path(folder).glob("*.index"), key=rank)
    return paths[-1].with_suffix("") if paths else None


def google_name(name: str, pairs: Sequence[tuple[str, str]] = ()) -> tuple[str, bool]:
    """Return Google's name of a tensor, and whether Google stores its matrix transposed.

    Args:
        name: str. The canonical name.
        pairs: sequence of (str, str). A value of `Architecture.google_names`.
    """
    renamed = rename(name, pairs)
    if renamed == "cls.predictions.bias":
        return "cls/predictions/output_bias", False
    if renamed.startswith("cls.seq_relationship."):
        return f"cls/seq_relationship/output_{'weights' if renamed.endswith('weight') else 'bias'}", False
    path = re.sub(r"\.layer\.(\d+)\.", r".layer_\1.", renamed).replace(".", "/")
    if ".LayerNorm." in name:
        return re.sub("/weight$", "/gamma", re.sub("/bias$", "/beta", path)), False
    if name.startswith("bert.embeddings."):
        return path.removesuffix("/weight"), False
    return re.sub(r"/weight$", "/kernel", path), path.endswith("/weight")


def open_google(folder: str | os.PathLike) -> tuple[BertConfig, BaseTokenizer, dict[str, StoredTensor]]:
    """Read the settings, the tokenizer and the index of the weights of a Google checkpoint folder.

    Returns:
        (`BertConfig`, tokenizer, dict of canonical name -> `StoredTensor`).

    Raises:
        CheckpointError: the settings are missing, the index cannot be read, or a data file is missing or too short.
    """
    import tensorflow as tf

    folder, prefix = Path(folder), find_prefix(folder)
    paths = (folder / name for name in (*GOOGLE_SETTINGS, "config.json"))
    settings = next((path for path in paths if path.is_file()), None)
    if settings is None:
        *first_names, last_name = GOOGLE_SETTINGS
        raise CheckpointError(
            f"{folder} has a TensorFlow checkpoint and no settings: {', '.join(first_names)} or {last_name}. "
            "ELECTRA's archives have none: write electra_config.json (docs/reference/family.md shows it for "
            "each size)."
        )
    config = BertConfig.from_json(settings)
    heads, pairs, canonical_names = _names_of_settings(config, settings)
    others = config.architecture.google_others.get(heads, ())
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{prefix}.index is not a complete checkpoint index ({error}).") from error
    _check_data_files(prefix, sum(_bytes(shapes[name], dtypes[name]) for name in shapes))
    tensors = {}
    for name in shapes:
        if not _TRAINING_STATE.search(name) and not name.startswith(others):
            canonical = canonical_names.get(name, name)
            transposed = google_name(canonical, pairs)[1]
            tensors[canonical] = _stored(prefix, reader, name, tuple(shapes[name]), transposed)
    return config, read_tokenizer(folder), tensors


def google_heads(folder: Path, config: BertConfig) -> frozenset[str] | None:
    """Return the heads of a folder's checkpoint, read from the index without TensorFlow.

    Args:
        folder: Path. The folder.
        config: `BertConfig`. Its settings.

    Returns:
        frozenset of str; None if the model must be loaded to know them, because the architecture has no such
        checkpoints or the index cannot be read.
    """
    settings = next(path for name in (*GOOGLE_SETTINGS, "config.json") if (path := folder / name).is_file())
    if not config.architecture.google_names:
        return None
    _, _, canonical_names = _names_of_settings(config, settings)
    try:
        names = list(_index_names(Path(f"{find_prefix(folder)}.index").read_bytes()))
    except (IndexError, ValueError):
        return None
    return heads_present(canonical_names.get(name) for name in names)


def _index_names(data):
    """The names in an index: a table as in google/leveldb, doc/table_format.md, with uncompressed blocks.

    Raises:
        IndexError, ValueError: the data is not such a table.
    """
    if data[-8:] != _TABLE_END:
        raise ValueError("not a table")
    numbers = _Varints(data, len(data) - _TABLE_FOOTER)
    numbers.next(), numbers.next()  # offset and size of the metaindex block
    for _, position in _entries(data, numbers.next(), numbers.next()):
        block = _Varints(data, position)
        for name, _ in _entries(data, block.next(), block.next()):
            if name:  # the first entry has no name and describes the files
                yield name.decode()


def _entries(data, start, size):
    """Pairs (key, position of the value) of one block; each key is stored without the prefix it shares with the last.

    Raises:
        IndexError, ValueError: the data is not such a block.
    """
    end = start + size
    if data[end]:
        raise ValueError("a compressed block")
    key, numbers = b"", _Varints(data, start)
    last = end - 4 - 4 * int.from_bytes(data[end - 4 : end], "little")  # the restart array begins here
    while numbers.position < last:
        shared_bytes, key_bytes, value_bytes = numbers.next(), numbers.next(), numbers.next()
        key = key[:shared_bytes] + data[numbers.position : numbers.position + key_bytes]
        numbers.position += key_bytes
        yield key, numbers.position
        numbers.position += value_bytes


class _Varints:
    """Numbers with seven bits per byte, the lowest first; the highest bit of a byte means that more bytes follow."""

    def __init__(self, data, position):
        self.data, self.position = data, position

    def next(self):
        number = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7


def _names_of_settings(config, settings):
    """(heads, google_names of the architecture, dict Google's name -> canonical name) of the model that the settings
    file describes; a checkpoint can hold two models (ELECTRA's)."""
    architecture, architectures = config.architecture, read_json(settings).get("architectures", ())
    head_sets = list(architecture.google_names)
    if not head_sets:
        raise CheckpointError(f"{architecture.title} has no TensorFlow checkpoints; use its safetensors.")
    if not isinstance(architectures, (list, tuple)):
        raise CheckpointError(
            f"architectures must be a list of class names in the settings, not {architectures!r:.60}."
        )
    named = (heads for heads in head_sets if architecture.transformers_class(heads) in architectures)
    heads = next(named, head_sets[0])
    pairs = architecture.google_names[heads]
    return heads, pairs, {google_name(name, pairs)[0]: name for name in tensor_shapes(config, heads)}


def _bytes(shape, dtype):
    return int(np.prod(shape, dtype=np.int64)) * max(dtype.size, 0)


def _check_data_files(prefix, needed):
    paths = sorted(prefix.parent.glob(f"{prefix.name}.data-*"))
    count = int(paths[0].name.rsplit("-", 1)[-1]) if paths else 1
    size = sum(path.stat().st_size for path in paths)
    if len(paths) != count or size < needed:
        raise CheckpointError(
            f"{prefix}.data-*: there are {len(paths)} of {count} files with {size} bytes, "
            f"but the index lists tensors of {needed} bytes; copy or download them again."
        )


def _stored(prefix, reader, name, shape, transposed):
    import tensorflow as tf

    def read(rows=slice(None)):
        try:
            value = reader.get_tensor(name)
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{prefix}: {name} cannot be read ({error}).") from error
        return (value.T if transposed else value)[rows]

    return StoredTensor(Path(f"{prefix}.index"), name, shape[::-1] if transposed else shape, read)


def write_google(folder: Path, config: BertConfig, tokenizer: BaseTokenizer, tensors: Mapping[str, np.ndarray]) -> None:
    """Write a Google checkpoint folder.

    Args:
        folder: Path. An existing folder.
        config: `BertConfig`. The settings.
        tokenizer: tokenizer. Its files are written.
        tensors: dict of canonical name -> float32 array in Hugging Face's orientation.

    Raises:
        CheckpointError: the architecture has no such checkpoints, or they cannot hold this model.
        OSError: a file cannot be written.
    """
    import tensorflow as tf

    architecture, heads = config.architecture, heads_present(tensors)
    format_heads = next((names for names in architecture.google_names if heads <= set(names)), None)
    if format_heads is None or architecture.google_settings is None:
        raise CheckpointError(
            f"There is no TensorFlow checkpoint format for {architecture.with_article} with the heads "
            f"{', '.join(sorted(heads))}; write the format 'hf'."
        )
    if not config.tie_word_embeddings:
        raise CheckpointError(
            "The model's output table differs from its token embeddings, which a TensorFlow checkpoint of Google's "
            "cannot hold; write the format 'hf'."
        )
    if config.has_embedding_projection and config.embedding_width == config.hidden_size:
        raise CheckpointError(
            f"embedding_size equals hidden_size ({config.hidden_size}): there Google's code has no matrix between the "
            "embeddings and the layers, and this model has one; write the format 'hf'."
        )
    if config.layer_norm_eps != _EPSILON:
        raise CheckpointError(
            f"A TensorFlow checkpoint of Google's has layer_norm_eps {_EPSILON}, and this model has "
            f"{config.layer_norm_eps}; write the format 'hf'."
        )
    for setting, google_values in architecture.google_values.items():
        value = getattr(config, setting)
        if google_values.get(value, value) != value:
            raise CheckpointError(
                f"{setting} is {value!r}, and {value!r} means {google_values[value]!r} in {architecture.title}'s "
                "TensorFlow format, which has no name for this model's; write the format 'hf'."
            )
    names, values = [], []
    for canonical, value in tensors.items():
        name, transposed = google_name(canonical, architecture.google_names[format_heads])
        names.append(name)
        values.append(tf.convert_to_tensor(value.T if transposed else value, tf.float32))
    with atomic_write(folder / PREFIX) as temporary:
        slices = [""] * len(names)
        with system_errors(folder / PREFIX, tf.errors.OpError):
            tf.raw_ops.SaveV2(prefix=str(temporary), tensor_names=names, shape_and_slices=slices, tensors=values)
        for path in folder.glob(f"{temporary.name}.*"):
            path.replace(folder / path.name.replace(temporary.name, PREFIX))
        temporary.touch()
    (folder / PREFIX).unlink()
    tokenizer.save(folder)
    settings = config.to_google_dict()
    if len(architecture.google_names) > 1:
        settings = {**settings, "architectures": [architecture.transformers_class(format_heads)]}
    write_json(folder / architecture.google_settings, settings)
