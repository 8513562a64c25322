"""A model folder of one format made into a folder of another."""

import os
from dataclasses import dataclass
from pathlib import Path

from bert_tf.checkpoints.formats.google import write_google
from bert_tf.checkpoints.formats.kerashub import activation_note, write_preset
from bert_tf.checkpoints.reading import read
from bert_tf.checkpoints.saving import DTYPES, save, tensor_values
from bert_tf.errors import CheckpointError
from bert_tf.files import atomic_folder, is_missing_or_empty

FORMATS = ("own", "hf", "google", "keras-nlp")


@dataclass(frozen=True)
class Conversion:
    """What was written.

    Attributes:
        path: the new folder. format: one of `FORMATS`. heads: frozenset of the heads in it.
        dropped: heads the source had and the format has no place for. note: what is worth knowing, or "".
    """

    path: Path
    format: str
    heads: frozenset
    dropped: frozenset
    note: str = ""


def convert(
    src: str | os.PathLike,
    dst: str | os.PathLike,
    to: str = "own",
    dtype: str = "float32",
    max_shard_bytes: int | None = None,
) -> Conversion:
    """Reads a model folder in any format and writes it in another.

    Args:
        src: folder of the model. dst: folder to make; it must not exist, or be empty.
        to: "own" (this project's; Transformers reads it unless it is int8), "hf" (the same, never int8),
            "google" (TF checkpoint), "keras-nlp" (KerasHub preset).
        dtype: "float32", "float16", or "int8" for "own"; "float16" also for "hf"; the other two hold float32.
        max_shard_bytes: as in `save`.

    Returns: Conversion.

    Raises:
        CheckpointError: an unknown format, a dtype it cannot hold, a target that is not empty, or a source
            that cannot be read. Then nothing is left at `dst`.
    """
    src, dst = Path(src), Path(dst)
    check_request(dst, to, dtype)
    config, tokenizer, model = read(src)
    card = src / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else None
    with atomic_folder(dst) as unfinished:
        if to == "google":
            write_google(unfinished, config, tokenizer, dict(tensor_values(model)))
        elif to == "keras-nlp":
            write_preset(unfinished, config, tokenizer, dict(tensor_values(model)))
        else:
            save(unfinished, config, tokenizer, model, dtype, card=text, max_shard_bytes=max_shard_bytes)
    return _report(dst, to, config, model.bert_heads)


def check_request(dst: Path, to: str, dtype: str) -> None:
    """Refuses what `convert` cannot write. Raises: CheckpointError with one sentence."""
    if to not in FORMATS:
        raise CheckpointError(f"There is no format {to!r}; choose from {', '.join(FORMATS)}.")
    if dtype not in DTYPES:
        raise CheckpointError(f"Weights cannot be stored as {dtype!r}; choose from {', '.join(DTYPES)}.")
    if dtype == "int8" and to != "own":
        raise CheckpointError(f"Only the format 'own' stores weights as int8, not {to!r}; choose float32.")
    if dtype != "float32" and to in ("google", "keras-nlp"):
        raise CheckpointError(f"The format {to!r} is written in float32 only, not {dtype}.")
    if not is_missing_or_empty(dst):
        raise CheckpointError(f"{dst} is there already and not empty; give a new folder.")


def _report(dst, to, config, heads):
    kept = heads & {"pooler"} if to == "keras-nlp" else heads
    notes = []
    if heads - kept:
        lost = " and ".join(sorted(head.upper() for head in heads - kept))
        notes.append(f"A KerasHub preset has no place for an {lost} head: left out.")
    if to == "keras-nlp" and activation_note(config):
        notes.append(activation_note(config))
    return Conversion(dst, to, kept, heads - kept, " ".join(notes))
