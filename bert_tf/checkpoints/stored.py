"""A tensor that lies in a file and has not been read yet."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class StoredTensor:
    """What a file's header says of one tensor, and the way to its values.

    Attributes:
        file: the file it lies in. name: what it is called there.
        shape: in Hugging Face's orientation (dense matrices [out, in]).
        read: read(rows=slice(None)) -> the values as a NumPy array, or those of some rows (first axis).
        by_rows: whether a part of the rows can be read without reading the rest.
    """

    file: Path
    name: str
    shape: tuple[int, ...]
    read: Callable[..., np.ndarray]
    by_rows: bool = False
