"""Checksums of model folders: a `checksums.json` lists the files on which a model's numbers depend.

A flipped bit in the weights, two exchanged lines of the vocabulary or another number of heads in config.json give other
predictions without an error. README.md is not in the list: anybody may edit it.
"""

import os
from pathlib import Path

from bert_tf.checkpoints.formats.safetensors_folder import INDEX_FILE, weight_files
from bert_tf.checksums import CHECKSUMS, find_damage, write_checksums
from bert_tf.errors import CheckpointError

#: The files of a delta folder that can name its base model.
REFERENCE_FILES = ("task.json", "base.json")
#: The files of a vocabulary; the tokenizers write them beside tokenizer_config.json.
VOCABULARY_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
)

#: The patterns of the files of weights of all formats, also of one that is not read.
WEIGHT_FILES = ("*.safetensors", "*.ckpt*", "*.index", "*.weights.h5", "tf_model.h5", "pytorch_model.bin")

_FILES = ("config.json", *REFERENCE_FILES, "tokenizer_config.json", *VOCABULARY_FILES, INDEX_FILE)


def write_model_checksums(folder: str | os.PathLike) -> None:
    """Write `checksums.json` of the model that a folder holds now.

    Raises:
        OSError: a file cannot be read or written.
        CheckpointError: the index of the weights is broken.
    """
    folder = Path(folder)
    weights = weight_files(folder) or _weights_of_other_formats(folder)
    write_checksums(folder, [*weights, *(name for name in _FILES if (folder / name).is_file())])


def _weights_of_other_formats(folder):
    """The names of the files of weights; none of safetensors, nor pytorch_model.bin, which is never read."""
    names = {path.name for pattern in WEIGHT_FILES for path in folder.glob(pattern)}
    return sorted(name for name in names if not name.startswith(".") and not name.endswith((".safetensors", ".bin")))


def remove_model_checksums(folder: str | os.PathLike) -> None:
    """Delete `checksums.json` before the files change, so that an interrupted change does not look like damage."""
    (Path(folder) / CHECKSUMS).unlink(missing_ok=True)


def check_model_checksums(folder: str | os.PathLike) -> None:
    """Compare the files of a model folder with its `checksums.json`; a folder without one is accepted.

    Raises:
        CheckpointError: a file is missing or has changed; the message names it.
    """
    if damage := find_damage(Path(folder)):
        raise CheckpointError(
            f"{damage[0]} Get the model again. If you changed the file yourself, write new checksums with "
            f"`python -m bert_tf check {folder} --write`."
        )
