"""Folders that hold only what differs from another model: a task's head, the layers that were trained.

Such a folder's task.json, or base.json where there is no task, names the other model as "base_model". Its settings
are the folder's own, the number of layers too; every tensor that it lacks, and the vocabulary if it has none, are the
other model's.
"""

import hashlib
from pathlib import Path

import numpy as np

from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
from bert_tf.checkpoints.library import find
from bert_tf.checkpoints.saving import save, tensor_values
from bert_tf.checkpoints.tensor_names import canonical_name, is_task_tensor, tensor_shapes
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError, UnknownModel
from bert_tf.files import read_json, write_json
from bert_tf.tokenizers import read_tokenizer

#: Where the other model is named.
FILES = ("task.json", "base.json")
#: What the kinds of tokenizers write beside tokenizer_config.json.
VOCABULARY_FILES = ("vocab.txt", "tokenizer.json", "vocab.json", "merges.txt", "spiece.model")


def base_model(folder):
    """The name of the model that the folder's tensors lie over, or None for a folder that is whole."""
    return _reference(folder).get("base_model")


def _reference(folder):
    paths = (Path(folder) / name for name in FILES)
    return next((read_json(path) for path in paths if path.is_file()), {})


def open_delta(folder, open_folder):
    """As `reading.read` opens a whole folder, the two joined.

    Args:
        folder: Path of the folder. open_folder: opens the other one.

    Returns: (BertConfig, Tokenizer, dict canonical name -> StoredTensor).

    Raises:
        CheckpointError: the other model is not here, is itself such a folder, or is not the one that was
            trained on.
    """
    values = _reference(folder)
    base = find(values["base_model"])
    if base_model(base):
        raise CheckpointError(
            f"{folder} lies over {base}, which itself lies over another model; only one model under a folder is read."
        )
    config = BertConfig.from_json(folder / "config.json")
    _, tokenizer, tensors = open_folder(base)
    own, taken = _own_and_taken(folder, config, tensors)
    # Folders made before signed the whole of the other model.
    if values.get("base_sign") not in (None, _signature(taken), _signature(tensors)):
        raise CheckpointError(
            f"{folder} was trained on another {values['base_model']} than {base}; get the one it was made from."
        )
    if any((folder / name).is_file() for name in VOCABULARY_FILES):
        tokenizer = read_tokenizer(folder)
    return config, tokenizer, {**taken, **own}


def _own_and_taken(folder, config, tensors):
    """The tensors that the folder holds, and those that it takes of the other model's."""
    own = {canonical_name(name, config.architecture): tensor for name, tensor in open_tensors(folder).items()}
    wanted = set(tensor_shapes(config, ()))
    # The other model's pre-training heads were not trained along; the pooler stays where the folder has none and its
    # architecture has one.
    if "pooler" in config.architecture.heads:
        wanted |= {name for name in tensors if name.startswith("bert.pooler.")}
    wanted -= set(own)
    return own, {name: tensor for name, tensor in tensors.items() if name in wanted and not is_task_tensor(name)}


def check_base(base):
    """Raises CheckpointError where nothing can be stored over a model, as it lies over another one itself.

    Args: base: name or folder of the model.
    """
    if lower := base_model(find(base)):
        raise CheckpointError(
            f"{base} is stored over {lower}, and what is stored over it could not be read; "
            f"store the whole model (without --delta), or begin with {lower}."
        )


def reference(base):
    """How another model is named in a folder: a known name as it is, the path of a folder made absolute."""
    try:
        find(base, allow_paths=False)
        return str(base)
    except UnknownModel:
        return str(find(base).resolve())


def remove_vocabulary(folder):
    """Takes the vocabulary of any kind of tokenizer out of a folder, whose other model has the same."""
    for name in VOCABULARY_FILES:
        (Path(folder) / name).unlink(missing_ok=True)


def fingerprint(folder, config, tensors):
    """A short text that is another one where what a folder takes of the model below it is another, in nearly every
    case.

    Whatever else of that model is trained on leaves it, and the folder, as they are.

    Args:
        folder: Path of the folder, with its tensors written. config: its `BertConfig`.
        tensors: dict canonical name -> StoredTensor of the model below.

    Returns: str, or None where no layer is taken.
    """
    return _signature(_own_and_taken(folder, config, tensors)[1])


def _signature(tensors):
    vectors = sorted(name for name, tensor in tensors.items() if name.endswith("output.LayerNorm.weight"))
    if not vectors:
        return None
    digest = hashlib.sha256()
    for name in (vectors[0], vectors[-1]):
        digest.update(tensors[name].read().astype("<f4").tobytes())
    return digest.hexdigest()[:16]


def save_delta(folder, config, tokenizer, model, base, open_folder, **options):
    """Writes of a pre-trained model its heads and those other tensors that differ from another model's.

    Args:
        folder, config, tokenizer, model, options: as `save` takes them.
        base: name or folder of the other model, of the same width and vocabulary. open_folder: opens it.

    Returns: Path of the folder.

    Raises: CheckpointError as `save` and `check_base`, and for a model of another vocabulary.
    """
    check_base(base)
    _, its_tokenizer, tensors = open_folder(find(base))
    if its_tokenizer.vocab != tokenizer.vocab:
        raise CheckpointError(f"{base} has another vocabulary than the model that is to lie over it.")
    body = tensor_shapes(config, ())
    same = {
        name
        for name, value in tensor_values(model)
        if name in body and name in tensors and np.array_equal(tensors[name].read(), value)
    }
    folder = save(folder, config, tokenizer, model, leave_out=same, **options)
    remove_vocabulary(folder)
    write_json(folder / "base.json", {"base_model": reference(base), "base_sign": fingerprint(folder, config, tensors)})
    return folder
