"""Exports a fine-tuned model: Hugging Face's format, or a SavedModel for TF Serving."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.errors import TaskError
from bert_tf.files import atomic_folder, is_missing_or_empty
from bert_tf.finetuning.task_settings import transformers_class

if TYPE_CHECKING:
    from collections.abc import Callable


#: The formats, and the dtypes in which each is written.
FORMATS = {
    "own": ("float32", "float16", "int8"),
    "hf": ("float32", "float16", "int8"),
    "saved-model": ("float32", "int8"),
}


def export_task(
    source: str | Path, target: str | Path, to: str = "hf", dtype: str = "float32", say: Callable[[str], object] = print
) -> Path:
    """Writes a fine-tuned model in another format.

    Args:
        source: str or Path. The name or folder of the model.
        target: str or Path. The folder to write; it must not exist, or be empty.
        to: str. "hf" or "own" (the same layout, complete even if the source is a delta), or "saved-model", which may
            also be spelled "savedmodel".
        dtype: str. As in `checkpoints.save`; a SavedModel is float32 or int8.
        say: callable that gets a sentence if the SavedModel cannot take raw text.

    Returns: Path of the folder.

    Raises: TaskError or CheckpointError; then nothing is written to `target`.
    """
    from bert_tf.finetuning.task_model import load_model

    target, to = Path(target), "saved-model" if to == "savedmodel" else to
    if to not in FORMATS:
        raise TaskError(
            f"A fine-tuned model is written here as {', '.join(FORMATS)}, not {to!r:.40}; `python -m bert_tf convert` "
            "also writes it as onnx, openvino or keras, and a classifier as keras-nlp."
        )
    if dtype not in FORMATS[to]:
        raise TaskError(f"The format {to!r} is written as {' or '.join(FORMATS[to])}, not {dtype}.")
    if not is_missing_or_empty(target):
        raise TaskError(f"{target} is there already and not empty; give a new folder.")
    loaded = load_model(source)
    if to == "hf":
        _check_transformers(loaded)
    with atomic_folder(target) as unfinished:
        if to == "saved-model":
            from bert_tf.finetuning.saved_model import write_saved_model

            if reason := write_saved_model(unfinished, loaded, dtype):
                say(f"ids only: {reason}")
        else:
            _write_folder(unfinished, loaded, dtype, packed=to == "hf")
    return target


def _check_transformers(loaded):
    settings, architecture = loaded.task.settings, loaded.config.architecture
    if transformers_class(settings, architecture) is None:
        raise TaskError(
            f"Transformers has no class with this head ({settings.task!r}, {_head_variant(settings, architecture)}, "
            f"on {architecture.with_article} model): it would start with random values there. Use own or saved-model."
        )


def _head_variant(settings, architecture):
    if settings.extra.get("crf"):
        return "with a CRF"
    if settings.pools_first_token and settings.task in architecture.sentence_heads:
        return "with a pooler, where heads trained now have their own layer on the first token"
    return f"pooling {settings.pooling!r}"


def _write_folder(folder, loaded, dtype, packed):
    from bert_tf.finetuning.task_folder import save_task

    card = loaded.path / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else None
    task = loaded.task
    save_task(folder, loaded.config, loaded.tokenizer, task.network, task.settings, text, dtype, packed=packed)
