"""Conversion of a model folder from one format to another."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

from bert_tf.checkpoints.formats.google import write_google
from bert_tf.checkpoints.formats.kerashub import differences_note, write_preset
from bert_tf.checkpoints.hub_repository import MODULES_FILE
from bert_tf.checkpoints.reading import open_folder, read
from bert_tf.checkpoints.saving import DTYPES, save, tensor_values
from bert_tf.checkpoints.tensor_names import is_task_tensor
from bert_tf.errors import CheckpointError
from bert_tf.files import atomic_folder, refuse_full_folder

#: The formats, and the dtypes in which each is written. `write_preset` of
#: `bert_tf.inference.exported.keras_nlp_task` also writes presets in int8 and with heads, by keras_nlp itself.
FORMATS = {"own": DTYPES, "hf": DTYPES, "google": ("float32",), "keras-nlp": ("float32",)}


class TaskHeadLeftOut(UserWarning):
    """The head of a fine-tuned model, or the pooling of a model of sentence-transformers, is not in the new folder."""


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion.

    Attributes:
        path: Path. The new folder.
        format: str. One of `FORMATS`.
        heads: frozenset of str. The heads in the new folder.
        dropped: frozenset of str. The heads of the source that the format cannot store.
        note: str. A remark for the user, or "".
    """

    path: Path
    format: str
    heads: frozenset[str]
    dropped: frozenset[str]
    note: str = ""


def convert(
    src: str | os.PathLike,
    dst: str | os.PathLike,
    to: str = "own",
    dtype: str = "float32",
    max_shard_bytes: int | None = None,
) -> Conversion:
    """Read a model folder in any format and write it in another.

    Of a fine-tuned model it writes the encoder alone, and warns of that (`TaskHeadLeftOut`); the command line writes
    it with its head, by `bert_tf.finetuning.export.export_task`.

    Args:
        src: str or path. The folder of the model.
        dst: str or path. The folder to write; it must be missing or empty.
        to: str. "own" (the format of this project, which Transformers reads unless it is int8), "hf" (the same; int8
            as Transformers reads it by compressed-tensors), "google" (TF checkpoint) or "keras-nlp" (KerasHub preset).
        dtype: str. "float32"; also "float16" and "int8" for "own" and "hf".
        max_shard_bytes: int or None. As in `save`.

    Returns:
        `Conversion`.

    Raises:
        CheckpointError: the format is unknown, the format does not support the dtype, `dst` is not empty, or `src`
            cannot be read. Nothing is written to `dst` then.
    """
    src, dst = Path(src), Path(dst)
    check_request(dst, to, dtype)
    config, tokenizer, model = read(src)
    if to == "hf" and not config.architecture.in_transformers:
        raise CheckpointError(
            f"Transformers has no class for {config.architecture.with_article} model, so it is not written as 'hf'; "
            "choose 'own'."
        )
    has_head = any(map(is_task_tensor, open_folder(src)[2]))
    if has_head or (src / MODULES_FILE).is_file():
        warnings.warn(
            f"{src} is a fine-tuned model: its {'head' if has_head else 'pooling'} is left out of {dst}. "
            "`python -m bert_tf convert` keeps the tasks that it knows.",
            TaskHeadLeftOut,
            stacklevel=2,
        )
    card_path = src / "README.md"
    card = card_path.read_text(encoding="utf-8", errors="replace") if card_path.is_file() else None
    with atomic_folder(dst) as unfinished:
        if to == "google":
            write_google(unfinished, config, tokenizer, dict(tensor_values(model)))
        elif to == "keras-nlp":
            write_preset(unfinished, config, tokenizer, dict(tensor_values(model)))
        else:
            save(
                unfinished,
                config,
                tokenizer,
                model,
                dtype,
                card=card,
                max_shard_bytes=max_shard_bytes,
                packed=to == "hf",
            )
    return _report(dst, to, config, tokenizer, model.bert_heads)


def check_request(dst: Path, to: str, dtype: str) -> None:
    """Check the arguments of `convert`.

    Raises:
        CheckpointError: the format is unknown, it does not support the dtype, or `dst` is not empty.
    """
    if to not in FORMATS:
        raise CheckpointError(f"There is no format {to!r}; choose from {', '.join(FORMATS)}.")
    if dtype not in DTYPES:
        raise CheckpointError(f"Weights cannot be stored as {dtype!r}; choose from {', '.join(DTYPES)}.")
    if dtype not in FORMATS[to]:
        advice = " `python -m bert_tf convert` writes presets in int8 too." if to == "keras-nlp" else ""
        raise CheckpointError(f"The format {to!r} is written as {' or '.join(FORMATS[to])}, not {dtype}.{advice}")
    refuse_full_folder(dst)


def _report(dst, to, config, tokenizer, heads):
    stored = heads & {"pooler"} if to == "keras-nlp" else heads
    dropped = heads - stored
    notes = []
    if dropped:
        names = " and ".join(sorted(head.upper() for head in dropped))
        notes.append(f"A KerasHub preset cannot store an {names} head, so it was left out.")
    if to == "keras-nlp" and (difference := differences_note(config, tokenizer)):
        notes.append(difference)
    return Conversion(dst, to, stored, dropped, " ".join(notes))
