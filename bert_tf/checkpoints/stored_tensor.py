"""A tensor that lies in a file and has not been read yet."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bert_tf.errors import CheckpointError


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

    def finite(self, rows=slice(None)):
        """As `read`.

        Raises: CheckpointError: a value is not finite, which a weight never is.
        """
        values = self.read(rows)
        if not np.isfinite(values).all():
            raise CheckpointError(
                f"{self.file}: {self.name} holds values that are not finite; the file is damaged, or of "
                "a training that diverged."
            )
        return values
