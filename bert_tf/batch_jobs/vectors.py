"""Vectors as files: NumPy or Parquet, written row by row.

N number of vectors, H hidden size.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import IO

import numpy as np

# Rows of a row group of a Parquet file.
_ROWS_A_GROUP = 4096


def write_npy(file: IO[bytes], vectors: Iterable[np.ndarray], count: int, width: int) -> None:
    """Write `count` vectors float32 [H] with H = `width` as an array float32 [N, H]."""
    # The header needs only the number of rows and their width; the rows are written one by one.
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, width)}
    np.lib.format.write_array_header_2_0(file, header)
    for vector in vectors:
        file.write(vector.astype("<f4").tobytes())


def write_parquet(file: IO[bytes], vectors: Iterable[np.ndarray], count: int, width: int) -> None:
    """Write `count` vectors float32 [H] with H = `width` as a table with one column, "vector"."""
    import pyarrow
    from pyarrow import parquet

    vector_type = pyarrow.list_(pyarrow.float32(), width)
    with parquet.ParquetWriter(file, pyarrow.schema([("vector", vector_type)])) as writer:
        source = iter(vectors)
        while group := list(islice(source, _ROWS_A_GROUP)):
            flat = pyarrow.array(np.concatenate(group).astype(np.float32))
            writer.write_table(pyarrow.table({"vector": pyarrow.FixedSizeListArray.from_arrays(flat, width)}))


#: Extension of a file -> the function that writes it.
VECTOR_WRITERS: dict[str, Callable[[IO[bytes], Iterable[np.ndarray], int, int], None]] = {
    "npy": write_npy,
    "parquet": write_parquet,
}
