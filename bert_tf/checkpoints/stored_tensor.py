"""A tensor in a file whose values have not been read."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bert_tf.errors import CheckpointError


@dataclass(frozen=True)
class StoredTensor:
    """The header of one tensor in a file, and a function that reads its values.

    Attributes:
        file: Path. The file.
        name: str. The name of the tensor in the file.
        shape: tuple of int. The shape in Hugging Face's orientation (dense matrices [out, in]).
        read: callable. read(rows=slice(None)) returns the values of these rows (first axis) as a NumPy array.
        by_rows: bool. Whether some rows can be read without reading the rest.
    """

    file: Path
    name: str
    shape: tuple[int, ...]
    read: Callable[..., np.ndarray]
    by_rows: bool = False

    def finite(self, rows: slice = slice(None)) -> np.ndarray:
        """Read values as `read` does and check that they are finite.

        Raises:
            CheckpointError: a value is not finite.
        """
        values = self.read(rows)
        if not np.isfinite(values).all():
            raise CheckpointError(
                f"{self.file}: {self.name} holds values that are not finite; the file is damaged, or the "
                "training diverged."
            )
        return values
