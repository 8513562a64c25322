"""Checksums of the files of a folder: `checksums.json` holds the size and the CRC-32C of each, so that damage shows."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bert_tf.files import read_json, write_json

CHECKSUMS = "checksums.json"
_BLOCK = 1 << 20


def checksum(path: str | Path) -> dict[str, Any]:
    """The size and the CRC-32C of a file.

    Args:
        path: str or Path. The file.

    Returns: dict with "bytes", an int, and "crc32c", 8 hexadecimal digits.

    Raises: OSError if the file cannot be read.
    """
    import google_crc32c

    size, value = 0, google_crc32c.Checksum()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            size += len(block)
            value.update(block)
    return {"bytes": size, "crc32c": value.hexdigest().decode("ascii")}


def write_checksums(folder: str | Path, names: Iterable[str]) -> None:
    """Writes `checksums.json` of files in a folder.

    Args:
        folder: str or Path. names: iterable of str. The names of the files.

    Raises: OSError if a file cannot be read or the disk is full.
    """
    folder = Path(folder)
    write_json(folder / CHECKSUMS, {name: checksum(folder / name) for name in sorted(names)})


def has_checksums(folder: str | Path) -> bool:
    """Whether a folder has a `checksums.json`."""
    return (Path(folder) / CHECKSUMS).is_file()


def find_damage(folder: str | Path) -> list[str]:
    """Compares the files of a folder with its `checksums.json`.

    Args:
        folder: str or Path.

    Returns: list of str, a sentence for each file that is missing or has other bytes; empty if all are whole, and where
        the folder has no `checksums.json`.
    """
    folder = Path(folder)
    if not has_checksums(folder):
        return []
    try:
        recorded = read_json(folder / CHECKSUMS)
    except ValueError as error:
        return [str(error)]
    return [sentence for name, entry in recorded.items() if (sentence := file_damage(folder / name, entry))]


def file_damage(path: Path, recorded: Any) -> str | None:
    """Compares a file with its `checksum` of earlier.

    Args:
        path: Path. recorded: dict as `checksum` returns it.

    Returns: str, a sentence on what is wrong with the file; None if it is whole.
    """
    if not path.is_file():
        return f"{path} is missing."
    try:
        expected = {"bytes": int(recorded["bytes"]), "crc32c": str(recorded["crc32c"])}
    except (KeyError, TypeError, ValueError):
        return f"{path.parent / CHECKSUMS} has no size and checksum for {path.name}."
    # The size first: it costs nothing.
    size = path.stat().st_size
    if size != expected["bytes"]:
        return f"{path} is damaged: it has {size:,} bytes and was written with {expected['bytes']:,}."
    if checksum(path) != expected:
        return f"{path} is damaged: its bytes are not those that were written (CRC-32C)."
    return None
