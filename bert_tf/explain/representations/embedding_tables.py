"""The tables of the input embeddings: tokens, segments, positions.

Dimension legend: V vocabulary, E embedding (H in BERT), H hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bert_tf.errors import InputError
from bert_tf.runtime.weights import parameter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bert_tf.config import BertConfig
    from bert_tf.inference.bert import Bert


#: The parts whose sum is the input embedding.
PARTS = ("token", "segment", "position")
_BLOCK = 2048  # rows: 6 MB in Base


def parts_of(config: BertConfig) -> tuple[str, ...]:
    """The parts in `PARTS` that a model has: not every model adds vectors of segments or of positions."""
    has = {"token": True, "segment": config.type_vocab_size > 0, "position": config.architecture.has_position_table}
    return tuple(part for part in PARTS if has[part])


def embedding_table(bert: Bert, part: str) -> np.ndarray:
    """A table of the input embeddings, float32 [V or 2 or positions, E].

    A model without segments returns zeros for them. Positions begin with the first one that is used.

    Args:
        bert: Bert. The model.
        part: str. One of `PARTS`.
    """
    weight = _stored_table(bert, part)
    if weight is None:
        return np.zeros((2, bert.config.embedding_width), np.float32)
    table = weight.float32()
    return table[bert.config.position_offset :] if part == "position" else table


def embedding_rows(bert: Bert, part: str, ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """Rows of a stored table, without a copy of the whole table, which is 89 MB in Base.

    Args:
        bert: `Bert`.
        part: str. One of `PARTS`.
        ids: int [T]. The rows.

    Returns: np.ndarray. float32 [T, E]; zeros for a part that the model does not have.

    Raises: InputError if there is no such part.
    """
    weight = _stored_table(bert, part)
    if weight is None:
        return np.zeros((len(ids), bert.config.embedding_width), np.float32)
    return weight.float32(np.asarray(ids))


def embedding_blocks(bert: Bert, ids: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """Rows of the table of tokens, some at a time, for work that needs no copy of the whole table.

    Args:
        bert: `Bert`.
        ids: int [R]. The rows; None for all.

    Yields: np.ndarray. float32 [at most 2,048, E].
    """
    ids = np.arange(bert.config.vocab_size) if ids is None else ids
    for start in range(0, len(ids), _BLOCK):
        yield embedding_rows(bert, "token", ids[start : start + _BLOCK])


def _stored_table(bert, part):
    """The `Weight` of a part, with unused positions; None for the segments of a model without them."""
    stored = {
        "token": "word_embeddings",
        "segment": "token_type_embeddings",
        "position": "position_embeddings",
    }
    if part not in stored:
        raise InputError(f"There is no embedding table {part!r}; choose from {', '.join(PARTS)}.")
    if part not in parts_of(bert.config):
        return None
    return parameter(bert.weights, f"bert.embeddings.{stored[part]}.weight")
