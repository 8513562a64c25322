"""Saving a Keras model as a folder with Hugging Face's names, which Transformers reads too."""

import itertools
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.checkpoints.formats import compressed_tensors
from bert_tf.checkpoints.formats.safetensors_folder import write_tensors
from bert_tf.checkpoints.model_checksums import remove_model_checksums, write_model_checksums
from bert_tf.checkpoints.quantize import SCALE_SUFFIX, quantize_rows
from bert_tf.checkpoints.tensor_names import tensor_shapes
from bert_tf.config import BertConfig
from bert_tf.errors import CheckpointError
from bert_tf.files import write_json, write_text
from bert_tf.parameters import OUTPUT_BIAS, REPEATED_BIAS, parameter_counts
from bert_tf.tokenizers import BaseTokenizer

if TYPE_CHECKING:  # it imports Keras
    from bert_tf.models import BertModel

DTYPES = ("float32", "float16", "int8")
_BYTES = {"float32": 4, "float16": 2}
_PACKED = "packed int8"  # int8 for Transformers
_DTYPE_SENTENCE = "Weights stored as {}."  # of the short model card
_DTYPE_SENTENCES = re.compile("|".join(re.escape(_DTYPE_SENTENCE.format(dtype)) for dtype in (*DTYPES, _PACKED)))


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
    packed: bool = False,
) -> Path:
    """Write config.json, the tokenizer files (vocab.txt, tokenizer_config.json), model.safetensors, README.md and
    checksums.json.

    Args:
        folder: str or path. The folder; it is created if missing. Files of an earlier save are replaced, other
            files stay.
        config: `BertConfig`. The settings.
        tokenizer: tokenizer. Its files are written.
        model: `BertModel`. The model.
        dtype: str. "float32", "float16" or "int8" (matrices in eight bits with one scale per row, the rest
            float32).
        card: str or None. The text of the model card (README.md); None for a short one. In a short one
            of an earlier save, the dtype of the weights is changed to this one.
        max_shard_bytes: int or None. The largest size of one weights file; None for a single file.
        head: dict of name -> array, or None. The head of a fine-tuned model, stored in float32 unless `dtype` is
            "float16".
        settings: dict or None. Further entries of config.json.
        leave_out: collection of str. The names of tensors that are not written.
        packed: bool. Whether int8 is written as Transformers reads it (`formats.compressed_tensors`): the matrices in
            encoder layers are in eight bits, and the rest is float32.

    Returns:
        Path of the folder.

    Raises:
        CheckpointError: the dtype is unknown, a value is not finite or too large for the dtype, or the vocabulary
            has another size.
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
    head, head_dtype = head or {}, "float32" if dtype == "int8" else dtype
    if packed and dtype == "int8":
        dtype = _PACKED
    shapes = {name: shape for name, shape in tensor_shapes(config, model.bert_heads).items() if name not in leave_out}
    names = {name: _stored_names(config, name) for name in shapes}
    sizes = [
        *(_stored_bytes(name, shape, dtype) for name, shape in shapes.items() for _ in names[name]),
        *(_stored_bytes(name, value.shape, head_dtype) for name, value in head.items()),
    ]
    stored = itertools.chain(
        (
            _stored(name, stored_name, value, dtype)
            for name, value in tensor_values(model)
            for stored_name in names.get(name, ())
        ),
        (_stored(name, name, value, head_dtype) for name, value in head.items()),
    )
    remove_model_checksums(folder)
    write_tensors(folder, stored, sizes, max_shard_bytes)
    tokenizer.save(folder, model_max_length=config.max_tokens)
    entries = {"architectures": [config.architecture.transformers_class(model.bert_heads)]}
    if dtype == _PACKED:
        packed_names = [name for name, shape in shapes.items() if compressed_tensors.is_packed(name, shape)]
        entries |= compressed_tensors.settings(
            [stored_name for name in packed_names for stored_name in names[name]], config.architecture.prefix
        )
    write_json(folder / "config.json", {**config.to_hf_dict(), **entries, **(settings or {})})
    card = _default_card(config, model.bert_heads, dtype) if card is None else card
    write_text(folder / "README.md", _DTYPE_SENTENCES.sub(_DTYPE_SENTENCE.format(dtype), card))
    write_model_checksums(folder)
    return folder


def tensor_values(model: "BertModel") -> Iterator[tuple[str, np.ndarray]]:
    """Yield (canonical name, float32 array in Hugging Face's orientation) for each tensor of a `BertModel`."""
    from bert_tf.models import named_variables
    from bert_tf.parameters import is_transposed

    variables = named_variables(model)
    for name in tensor_shapes(model.bert_config, model.bert_heads):
        value = np.asarray(variables[name].numpy() if hasattr(variables[name], "numpy") else variables[name])
        value = value.astype(np.float32, copy=False)
        yield name, value.T if is_transposed(name) else value


def _stored_names(config, name):
    """The names of a tensor in the file. Transformers reads the bias of a head that is not tied beside its table."""
    canonical = (name, REPEATED_BIAS) if name == OUTPUT_BIAS and not config.tie_word_embeddings else (name,)
    return tuple(dict.fromkeys(map(config.architecture.stored_name, canonical)))  # some have the bias there alone


def _stored_bytes(name, shape, dtype):
    count = int(np.prod(shape))
    if dtype == _PACKED and compressed_tensors.is_packed(name, shape):
        return compressed_tensors.packed_bytes(shape)
    if dtype == "int8" and len(shape) == 2:
        return count + 4 * shape[0]
    return count * _BYTES.get(dtype, 4)


def _stored(canonical, name, value, dtype):
    """The arrays under which one tensor is stored; `name` is its name in the file."""
    if not np.isfinite(value).all():
        raise CheckpointError(f"{name} holds values that are not finite, so the model is not saved.")
    if dtype == _PACKED and compressed_tensors.is_packed(canonical, value.shape):
        return compressed_tensors.pack(name, value)
    if dtype == "int8" and value.ndim == 2:
        integers, scales = quantize_rows(value)
        return {name: integers, name + SCALE_SUFFIX: scales}
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
        f"{names}. {_DTYPE_SENTENCE.format(dtype)}\n"
    )
