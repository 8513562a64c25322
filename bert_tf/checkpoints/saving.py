"""A Keras model written as a folder of our own: Hugging Face's names, so that Transformers reads it too."""

import itertools
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.checkpoints.formats.safetensors_folder import write_tensors
from bert_tf.checkpoints.quantize import SCALE_SUFFIX, quantize_rows
from bert_tf.checkpoints.tensor_names import tensor_shapes
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.files import write_json, write_text
from bert_tf.parameters import parameter_counts
from bert_tf.tokenizers import BaseTokenizer

if TYPE_CHECKING:  # it imports Keras
    from bert_tf.models import BertModel

DTYPES = ("float32", "float16", "int8")
_BYTES = {"float32": 4, "float16": 2}


def save(
    folder: str | os.PathLike,
    config: BertConfig,
    tokenizer: BaseTokenizer,
    model: "BertModel",
    dtype: str = "float32",
    card: str | None = None,
    max_shard_bytes: int | None = None,
    head: dict[str, np.ndarray] | None = None,
    settings: dict[str, Any] | None = None,
    leave_out: Collection[str] = (),
) -> Path:
    """Writes config.json, vocab.txt, tokenizer_config.json, model.safetensors and README.md.

    Args:
        folder: path, made if it is not there; files of an earlier save are replaced, others left alone.
        config: BertConfig. tokenizer: Tokenizer. model: BertModel.
        dtype: "float32", "float16", or "int8": matrices in eight bits with a scale a row, the rest float32.
        card: text of the model card (README.md); None for a short one.
        max_shard_bytes: largest size of one file of weights; None for a single file.
        head: dict name -> array of a fine-tuned model's head, kept in float32 unless `dtype` is "float16".
        settings: dict of what else config.json is to hold. leave_out: names of tensors not to write.

    Returns: Path of the folder.

    Raises:
        CheckpointError: an unknown dtype, a value that is not finite or too large for it, or a vocabulary of
            another size.
    """
    if dtype not in DTYPES:
        raise CheckpointError(f"Weights cannot be stored as {dtype!r}; choose from {', '.join(DTYPES)}.")
    if tokenizer.vocab_size != config.vocab_size:
        raise CheckpointError(
            f"The tokenizer has {tokenizer.vocab_size} tokens and the model vocab_size "
            f"{config.vocab_size}; they do not belong together."
        )
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    head, narrow = head or {}, "float32" if dtype == "int8" else dtype
    shapes = {name: shape for name, shape in tensor_shapes(config, model.bert_heads).items() if name not in leave_out}
    sizes = [
        *(_stored_bytes(shape, dtype) for shape in shapes.values()),
        *(_stored_bytes(value.shape, narrow) for value in head.values()),
    ]
    packed = itertools.chain(
        (
            _packed(config.architecture.stored_name(name), value, dtype)
            for name, value in tensor_values(model)
            if name in shapes
        ),
        (_packed(name, value, narrow) for name, value in head.items()),
    )
    write_tensors(folder, packed, sizes, max_shard_bytes)
    tokenizer.save(folder, model_max_length=config.max_tokens)
    architecture = {"architectures": [config.architecture.transformers_class(model.bert_heads)]}
    write_json(folder / "config.json", {**config.to_hf_dict(), **architecture, **(settings or {})})
    write_text(folder / "README.md", _default_card(config, model.bert_heads, dtype) if card is None else card)
    return folder


def tensor_values(model: "BertModel") -> Iterator[tuple[str, np.ndarray]]:
    """Yields (canonical name, float32 array in Hugging Face's orientation) of a BertModel, one at a time."""
    from bert_tf.models import named_variables
    from bert_tf.parameters import is_transposed

    variables = named_variables(model)
    for name in tensor_shapes(model.bert_config, model.bert_heads):
        value = np.asarray(variables[name].numpy() if hasattr(variables[name], "numpy") else variables[name])
        value = value.astype(np.float32, copy=False)
        yield name, value.T if is_transposed(name) else value


def _stored_bytes(shape, dtype):
    count = int(np.prod(shape))
    if dtype != "int8":
        return count * _BYTES[dtype]
    return count + 4 * shape[0] if len(shape) == 2 else 4 * count


def _packed(name, value, dtype):
    """The arrays under which one tensor is stored."""
    if not np.isfinite(value).all():
        raise CheckpointError(f"{name} holds values that are not finite; such a model is not saved.")
    if dtype == "int8" and value.ndim == 2:
        whole, scales = quantize_rows(value)
        return {name: whole, name + SCALE_SUFFIX: scales}
    if dtype == "float16":
        if np.abs(value).max(initial=0) > np.finfo(np.float16).max:
            raise CheckpointError(
                f"{name} holds values over {np.finfo(np.float16).max:.0f}, too large for "
                "float16; store the model as float32."
            )
        return {name: value.astype(np.float16)}
    return {name: value}


def _default_card(config, heads, dtype):
    names = ", ".join(sorted(heads)) or "none"
    count = parameter_counts(config, heads)["total"]
    return (
        f"---\nlibrary_name: keras\n---\n\n# {config.architecture.title}, {config.num_hidden_layers} layers of "
        f"{config.hidden_size}\n\n{count:,} parameters, vocabulary of {config.vocab_size:,}, heads: "
        f"{names}. Weights stored as {dtype}.\n"
    )
