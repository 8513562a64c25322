"""Google's TensorFlow checkpoints: bert_config.json, vocab.txt, bert_model.ckpt.index and .data-*.

Names as in google-research/bert, `modeling.py` and `run_pretraining.py`. Dense kernels are [in, out] there.
"""

import re
from pathlib import Path

import numpy as np

from bert_tf.checkpoints.errors import CheckpointError
from bert_tf.checkpoints.files import replacing, write_json
from bert_tf.checkpoints.names import tensor_shapes
from bert_tf.checkpoints.stored import StoredTensor
from bert_tf.config import BertConfig
from bert_tf.text import Tokenizer

PREFIX = "bert_model.ckpt"
# The optimiser's moments and counters lie beside the weights in a checkpoint of a training run.
_TRAINING_STATE = re.compile(r"(^|/)(adam_[mv](_\d+)?|Adam(_\d+)?|global_step|beta[12]_power|lamb_[mv])$")


def find_prefix(folder):
    """The path before `.index` of the folder's checkpoint, or None.

    Of several, `bert_model.ckpt` is taken, else the one of the latest step (`model.ckpt-1000`).
    """
    def rank(path):
        step = re.search(r"-(\d+)\.index$", path.name)
        return path.name == f"{PREFIX}.index", int(step.group(1)) if step else -1, path.name

    found = sorted(Path(folder).glob("*.ckpt*.index"), key=rank)
    return found[-1].with_suffix("") if found else None


def google_name(name):
    """Google's name of a canonical one, and whether its matrix is transposed there."""
    if name == "cls.predictions.bias":
        return "cls/predictions/output_bias", False
    if name.startswith("cls.seq_relationship."):
        return f"cls/seq_relationship/output_{'weights' if name.endswith('weight') else 'bias'}", False
    path = re.sub(r"\.layer\.(\d+)\.", r".layer_\1.", name).replace(".", "/")
    if "/LayerNorm/" in path:
        return path.replace("Norm/weight", "Norm/gamma").replace("Norm/bias", "Norm/beta"), False
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
    settings = folder / "bert_config.json"
    if not settings.is_file():
        raise CheckpointError(f"{folder} has no bert_config.json, which a Google checkpoint folder needs.")
    config = BertConfig.from_json(settings)
    try:
        reader = tf.train.load_checkpoint(str(prefix))
        shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    except (tf.errors.OpError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{prefix}.index is not a complete checkpoint index ({error}).") from error
    _check_data_files(prefix, sum(_bytes(shapes[name], dtypes[name]) for name in shapes))
    ours = {google_name(name)[0]: name for name in tensor_shapes(config)}
    tensors = {}
    for name in shapes:
        if not _TRAINING_STATE.search(name):
            canonical = ours.get(name, name)
            tensors[canonical] = _stored(prefix, reader, name, tuple(shapes[name]), google_name(canonical)[1])
    return config, Tokenizer.from_folder(folder), tensors


def _bytes(shape, dtype):
    return int(np.prod(shape, dtype=np.int64)) * max(dtype.size, 0)


def _check_data_files(prefix, needed):
    parts = sorted(prefix.parent.glob(f"{prefix.name}.data-*"))
    count = int(parts[0].name.rsplit("-", 1)[-1]) if parts else 1
    held = sum(path.stat().st_size for path in parts)
    if len(parts) != count or held < needed:
        raise CheckpointError(f"{prefix}.data-*: {len(parts)} of {count} files with {held} bytes are there, "
                              f"but the index lists tensors of {needed} bytes; copy or download them again.")


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
    """
    import tensorflow as tf

    names, values = [], []
    for canonical, value in tensors.items():
        name, transposed = google_name(canonical)
        names.append(name)
        values.append(tf.convert_to_tensor(value.T if transposed else value, tf.float32))
    with replacing(folder / PREFIX) as temporary:
        tf.raw_ops.SaveV2(prefix=str(temporary), tensor_names=names, shape_and_slices=[""] * len(names),
                          tensors=values)
        for written in folder.glob(f"{temporary.name}.*"):
            written.replace(folder / written.name.replace(temporary.name, PREFIX))
        temporary.touch()
    (folder / PREFIX).unlink()
    tokenizer.save(folder)
    write_json(folder / "bert_config.json", config.to_google_dict())
