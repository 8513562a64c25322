"""Google's TensorFlow checkpoints: bert_config.json, vocab.txt, bert_model.ckpt.index and .data-*.

Names as in google-research/bert, `modeling.py` and `run_pretraining.py`, for ALBERT and ELECTRA as in theirs
(`bert_tf.architectures`). Dense kernels are [in, out] there.
"""

import re
from pathlib import Path

import numpy as np

from bert_tf.architectures.architecture import rename
from bert_tf.checkpoints.stored_tensor import StoredTensor
from bert_tf.checkpoints.tensor_names import heads_present, tensor_shapes
from bert_tf.config import GOOGLE_SETTINGS, BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.files import atomic_write, read_json, write_json
from bert_tf.tokenizers import read_tokenizer

PREFIX = "bert_model.ckpt"
_TABLE_END, _TABLE_FOOTER = bytes.fromhex("57fb808b247547db"), 48  # of a table: its mark, and bytes from the end
# The optimiser's moments and counters lie beside the weights in a checkpoint of a training run.
_TRAINING_STATE = re.compile(r"(^|/)(adam_[mv](_\d+)?|Adam(_\d+)?|global_step|beta[12]_power|lamb_[mv])$")


def find_prefix(folder):
    """The path before `.index` of the folder's checkpoint, or None.

    Of several, `bert_model.ckpt` is taken, else the one of the latest step (`model.ckpt-1000`).
    """

    def rank(path):
        step = re.search(r"-(\d+)\.index$", path.name)
        return path.name == f"{PREFIX}.index", int(step.group(1)) if step else -1, path.name

    found = sorted(Path(folder).glob("*.index"), key=rank)
    return found[-1].with_suffix("") if found else None


def google_name(name, pairs=()):
    """Google's name of a canonical one, and whether its matrix is transposed there.

    Args:
        name: canonical. pairs: of `Architecture.google_names`.
    """
    theirs = rename(name, pairs)
    if theirs == "cls.predictions.bias":
        return "cls/predictions/output_bias", False
    if theirs.startswith("cls.seq_relationship."):
        return f"cls/seq_relationship/output_{'weights' if theirs.endswith('weight') else 'bias'}", False
    path = re.sub(r"\.layer\.(\d+)\.", r".layer_\1.", theirs).replace(".", "/")
    if ".LayerNorm." in name:
        return re.sub("/weight$", "/gamma", re.sub("/bias$", "/beta", path)), False
    if name.startswith("bert.embeddings."):
        return path.removesuffix("/weight"), False
    return re.sub(r"/weight$", "/kernel", path), path.endswith("/weight")


def open_google(folder):
    """Reads settings, tokenizer and the weights' index of a Google checkpoint folder.

    Returns: (BertConfig, Tokenizer, dict canonical name -> StoredTensor).

    Raises:
        CheckpointError: the index cannot be read, or a data file is missing or too short for it.
    """
    import tensorflow as tf

    folder, prefix = Path(folder), find_prefix(folder)
    known = (folder / name for name in (*GOOGLE_SETTINGS, "config.json"))
    settings = next((path for path in known if path.is_file()), None)
    if settings is None:
        *most, last = GOOGLE_SETTINGS
        raise CheckpointError(
            f"{folder} has a TensorFlow checkpoint and no settings: {', '.join(most)} or {last}. "
            "ELECTRA's archives bring none: write electra_config.json (docs/family.md has it for "
            "each size)."
        )
    config = BertConfig.from_json(settings)
    heads = _heads_wanted(config.architecture, read_json(settings).get("architectures", ()))
    pairs, others = config.architecture.google_names[heads], config.architecture.google_others.get(heads, ())
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{prefix}.index is not a complete checkpoint index ({error}).") from error
    _check_data_files(prefix, sum(_bytes(shapes[name], dtypes[name]) for name in shapes))
    ours = {google_name(name, pairs)[0]: name for name in tensor_shapes(config, heads)}
    tensors = {}
    for name in shapes:
        if not _TRAINING_STATE.search(name) and not name.startswith(others):
            canonical = ours.get(name, name)
            transposed = google_name(canonical, pairs)[1]
            tensors[canonical] = _stored(prefix, reader, name, tuple(shapes[name]), transposed)
    return config, read_tokenizer(folder), tensors


def google_heads(folder, config):
    """The heads of a folder's checkpoint, read from the index without TensorFlow.

    Args:
        folder: Path. config: BertConfig, of its settings.

    Returns: frozenset; None where only loading can tell: a member or an index that cannot be read.
    """
    settings = next(path for name in (*GOOGLE_SETTINGS, "config.json") if (path := folder / name).is_file())
    if not config.architecture.google_names:
        return None
    heads = _heads_wanted(config.architecture, read_json(settings).get("architectures", ()))
    pairs = config.architecture.google_names[heads]
    ours = {google_name(name, pairs)[0]: name for name in tensor_shapes(config, heads)}
    try:
        names = list(_index_names(Path(f"{find_prefix(folder)}.index").read_bytes()))
    except (IndexError, ValueError):
        return None
    return heads_present(ours.get(name) for name in names)


def _index_names(data):
    """The names in an index: a table as in google/leveldb, doc/table_format.md, its blocks not compressed.

    Raises: IndexError, ValueError: something else.
    """
    if data[-8:] != _TABLE_END:
        raise ValueError("no table")
    numbers = _Varints(data, len(data) - _TABLE_FOOTER)
    numbers.next(), numbers.next()  # where the block of block names lies
    for _, place in _entries(data, numbers.next(), numbers.next()):
        block = _Varints(data, place)
        for name, _ in _entries(data, block.next(), block.next()):
            if name:  # the first entry, without a name, is about the files
                yield name.decode()


def _entries(data, start, size):
    """Pairs (key, place of the value) of one block: every key is written without what it shares with the last."""
    end = start + size
    if data[end]:
        raise ValueError("a compressed block")
    key, numbers = b"", _Varints(data, start)
    last = end - 4 - 4 * int.from_bytes(data[end - 4 : end], "little")  # then come the places to start from
    while numbers.place < last:
        shared, own, value = numbers.next(), numbers.next(), numbers.next()
        key = key[:shared] + data[numbers.place : numbers.place + own]
        numbers.place += own
        yield key, numbers.place
        numbers.place += value


class _Varints:
    """Numbers of seven bits a byte, the lowest first; the highest bit says that more follow."""

    def __init__(self, data, place):
        self.data, self.place = data, place

    def next(self):
        number = shift = 0
        while True:
            byte = self.data[self.place]
            self.place += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number
            shift += 7


def _heads_wanted(architecture, architectures):
    """Which model of a checkpoint that holds two (ELECTRA's) the settings are for; else the first."""
    kinds = list(architecture.google_names)
    if not kinds:
        raise CheckpointError(f"{architecture.title} has no TensorFlow checkpoints; use its safetensors.")
    return next((heads for heads in kinds if architecture.transformers_class(heads) in architectures), kinds[0])


def _bytes(shape, dtype):
    return int(np.prod(shape, dtype=np.int64)) * max(dtype.size, 0)


def _check_data_files(prefix, needed):
    parts = sorted(prefix.parent.glob(f"{prefix.name}.data-*"))
    count = int(parts[0].name.rsplit("-", 1)[-1]) if parts else 1
    held = sum(path.stat().st_size for path in parts)
    if len(parts) != count or held < needed:
        raise CheckpointError(
            f"{prefix}.data-*: {len(parts)} of {count} files with {held} bytes are there, "
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


def write_google(folder, config, tokenizer, tensors):
    """Writes a Google checkpoint folder.

    Args:
        folder: existing Path. config: BertConfig. tokenizer: Tokenizer.
        tensors: dict canonical name -> float32 array in Hugging Face's orientation.

    Raises:
        CheckpointError: there are no such checkpoints of this architecture.
    """
    import tensorflow as tf

    architecture, heads = config.architecture, heads_present(tensors)
    kind = next((kind for kind in architecture.google_names if heads <= set(kind)), None)
    if kind is None:
        raise CheckpointError(
            f"There is no TensorFlow checkpoint format for a {architecture.title} with the heads "
            f"{', '.join(sorted(heads))}; write the format 'hf'."
        )
    names, values = [], []
    for canonical, value in tensors.items():
        name, transposed = google_name(canonical, architecture.google_names[kind])
        names.append(name)
        values.append(tf.convert_to_tensor(value.T if transposed else value, tf.float32))
    with atomic_write(folder / PREFIX) as temporary:
        tf.raw_ops.SaveV2(prefix=str(temporary), tensor_names=names, shape_and_slices=[""] * len(names), tensors=values)
        for written in folder.glob(f"{temporary.name}.*"):
            written.replace(folder / written.name.replace(temporary.name, PREFIX))
        temporary.touch()
    (folder / PREFIX).unlink()
    tokenizer.save(folder)
    chosen = {"architectures": [architecture.transformers_class(kind)]} if len(architecture.google_names) > 1 else {}
    write_json(folder / architecture.google_settings, {**config.to_google_dict(), **chosen})
