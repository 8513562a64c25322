"""Small files of a model folder: JSON read with clear errors, and files that appear whole or not at all."""

import json
import os
from contextlib import contextmanager
from pathlib import Path

from bert_tf.checkpoints.errors import CheckpointError


def read_json(path):
    """The object in a JSON file.

    Raises:
        CheckpointError: the file is missing, not JSON, or holds something other than an object.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}.") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds a JSON {type(values).__name__}, where an object is expected.")
    return values


def write_json(path, values):
    """Writes an object as indented JSON, atomically."""
    write_text(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def write_text(path, text):
    """Writes UTF-8 text, atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def replacing(path):
    """A temporary path beside `path`, renamed to it when the block ends well and removed when it does not."""
    path = Path(path)
    # Some writers look at the ending of a name, so the real one comes last.
    temporary = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
