"""A tensor in a file whose values have not been read, and its values in memory as they are stored."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bert_tf.checkpoints.quantize import dequantize_rows, quantize_rows
from bert_tf.errors import CheckpointError


@dataclass(frozen=True)
class Weight:
    """The values of one tensor in memory, in float or in eight bits with one scale per row.

    Attributes:
        values: float or int8 array. A matrix of a dense layer is [out, in].
        scales: float32 [out] or None. The scale of each row; None if the values are float.
    """

    values: np.ndarray
    scales: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.values.shape

    @property
    def nbytes(self) -> int:
        """The bytes in memory."""
        return self.values.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def float32(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return the values of these rows (a slice or numbers), float32; without copying a float32 slice."""
        if self.scales is None:
            return self.values[rows].astype(np.float32, copy=False)
        return dequantize_rows(self.values[rows], self.scales[rows])

    def quantized(self) -> "Weight":
        """Return the matrix in eight bits; the weight itself if it is in eight bits already.

        Raises:
            ValueError: a value is not finite.
        """
        return self if self.scales is not None else Weight(*quantize_rows(self.values))


@dataclass(frozen=True)
class StoredTensor:
    """The header of one tensor in a file, and functions that read its values.

    Attributes:
        file: Path. The file.
        name: str. The name of the tensor in the file.
        shape: tuple of int. The shape in Hugging Face's orientation (dense matrices [out, in]).
        read: callable. read(rows=slice(None)) returns the values of these rows (first axis) as a NumPy array.
        by_rows: bool. Whether some rows can be read without reading the rest.
        read_eight_bit: callable or None. read_eight_bit() returns int8 [out, in] and float [out], the scales of the
            rows; None if the tensor is not stored in eight bits.
    """

    file: Path
    name: str
    shape: tuple[int, ...]
    read: Callable[..., np.ndarray]
    by_rows: bool = False
    read_eight_bit: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None

    def float32(self, rows: slice = slice(None)) -> np.ndarray:
        """Read values as `finite` does, as float32."""
        return self.finite(rows).astype(np.float32, copy=False)

    def finite(self, rows: slice = slice(None)) -> np.ndarray:
        """Read values as `read` does and check that they are finite.

        Raises:
            CheckpointError: a value is not finite.
        """
        return self._checked(self.read(rows))

    def weight(self) -> Weight:
        """Read all values as they are stored, and check that they are finite.

        Raises:
            CheckpointError: a value is not finite.
        """
        if self.read_eight_bit is None:
            return Weight(self.finite())
        integers, scales = self.read_eight_bit()
        return Weight(integers, self._checked(scales.astype(np.float32)))

    def _checked(self, values):
        if not np.isfinite(values).all():
            raise CheckpointError(
                f"{self.file}: {self.name} holds values that are not finite; the file is damaged, or the "
                "training diverged."
            )
        return values
