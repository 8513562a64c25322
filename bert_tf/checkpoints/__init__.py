"""Stored models: find them by name, read four formats, save, convert and download them.

Importing this package does not import TensorFlow; `read`, `save` and `convert` import it when they are called.
"""

from bert_tf.checkpoints.convert import Conversion, convert
from bert_tf.checkpoints.hub import download, download_folder, look_up, partial_download_bytes
from bert_tf.checkpoints.hub_repository import HubRepository
from bert_tf.checkpoints.hub_repository import parse_name as parse_repository
from bert_tf.checkpoints.library import ModelInfo, embedded_dir, find, list_models, models_dir
from bert_tf.checkpoints.reading import read
from bert_tf.checkpoints.registry import RELEASED, ReleasedModel, closest_names, released
from bert_tf.checkpoints.saving import save
from bert_tf.errors import CheckpointError, DownloadError, MissingHead, UnknownModel, require_head

__all__ = [
    "RELEASED",
    "CheckpointError",
    "Conversion",
    "DownloadError",
    "MissingHead",
    "HubRepository",
    "ModelInfo",
    "ReleasedModel",
    "UnknownModel",
    "partial_download_bytes",
    "convert",
    "download",
    "download_folder",
    "embedded_dir",
    "find",
    "list_models",
    "look_up",
    "models_dir",
    "closest_names",
    "parse_repository",
    "read",
    "released",
    "require_head",
    "save",
]
